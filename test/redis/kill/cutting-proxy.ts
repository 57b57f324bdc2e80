// A proxy between a process and its Redis. Now and then it passes a commit on, withholds the reply and cuts the connection, so that the
// process cannot know whether the commit happened.
import { connect, createServer, type Socket } from 'node:net'
import { Script } from '../../../src/store/redis/scripts.ts'
import { listenInPlaceOf } from '../../postgres/proxy-address.ts'
import type { StormProxy } from '../../postgres/kill/storm.ts'

/** A client names a script by its hash. */
const COMMITS = (['', 'allow-oom'] as const).map((flag) => new Script('commit.lua', flag).sha)

export async function cuttingProxy(url: string, chance: () => number): Promise<StormProxy> {
  const to = new URL(url)
  const sockets = new Set<Socket>()
  let left = 0
  let share = 0
  let done = Promise.withResolvers<void>()
  const isCut = (): boolean => {
    if (left === 0 || chance() >= share) return false
    left--
    if (left === 0) done.resolve()
    return true
  }
  const server = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname)
    const pair = [client, upstream]
    const end = (): void => {
      for (const socket of pair) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of pair) {
      sockets.add(socket)
      socket.setNoDelay().on('error', end).on('close', end)
    }
    let hasCommit = false
    client.on('data', (chunk) => {
      hasCommit ||= COMMITS.some((sha) => chunk.includes(sha))
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      const isReply = hasCommit
      hasCommit = false
      if (isReply && isCut()) end()
      else client.write(chunk)
    })
  })
  return {
    url: await listenInPlaceOf(url, server),
    async cut(times, every) {
      left = times
      share = 1 / every
      done = Promise.withResolvers()
      await done.promise
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
