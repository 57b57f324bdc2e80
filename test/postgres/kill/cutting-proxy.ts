// A proxy between a process and its PostgreSQL. Now and then it passes a commit on, withholds the reply and cuts the
// connection, so that the process cannot know whether the commit happened.
import { connect, createServer, type Socket } from 'node:net'
import { listenInPlaceOf } from '../proxy-address.ts'

export interface CuttingProxy {
  /** The server's address, through the proxy. */
  readonly url: string
  /** Cuts about one in `every` commits of writing transactions; resolves when there were enough. */
  cut(times: number, every: number): Promise<void>
  close(): void
}

const HEADER = 5
const COMMAND_COMPLETE = 'C'.charCodeAt(0)

export async function cuttingProxy(url: string, chance: () => number): Promise<CuttingProxy> {
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
    client.pipe(upstream)
    const answers = new Answers()
    upstream.on('data', (chunk) => {
      const { whole, commits } = answers.take(chunk)
      if (commits > 0 && isCut()) end()
      else if (whole.length > 0) client.write(whole)
    })
  })
  return {
    url: await listenInPlaceOf(url, server),
    cut(times, every) {
      left = times
      share = 1 / every
      done = Promise.withResolvers()
      return done.promise
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Parses the server's messages. */
class Answers {
  #rest: Buffer = Buffer.alloc(0)
  #hasWritten = false

  /** `whole` is the end of the last complete message; `commits` counts the messages that confirm a commit of writes. */
  take(chunk: Buffer): { readonly whole: Buffer; readonly commits: number } {
    const all = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    let commits = 0
    while (all.length - at >= HEADER) {
      const end = at + 1 + all.readUInt32BE(at + 1)
      if (end > all.length) break
      if (all[at] === COMMAND_COMPLETE && this.#commits(all.toString('latin1', at + HEADER, end - 1))) commits++
      at = end
    }
    this.#rest = all.subarray(at)
    return { whole: all.subarray(0, at), commits }
  }

  #commits(tag: string): boolean {
    if (tag === 'BEGIN') this.#hasWritten = false
    else if (/^(INSERT 0|UPDATE|DELETE) [1-9]/.test(tag)) this.#hasWritten = true
    return tag === 'COMMIT' && this.#hasWritten
  }
}
