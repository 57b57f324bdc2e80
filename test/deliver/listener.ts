// A listener on every address of this machine that counts connections, and the dependencies of one POST.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../src/clock.ts'
import { guardedAgent, type GuardOptions } from '../../src/deliver/http/guard.ts'
import { post, type PostDependencies, type PostResult, type PostRequest } from '../../src/deliver/http/post.ts'

export interface Listener {
  readonly port: number
  readonly connections: () => number
}

export async function listening(server: Server, host?: string): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen({ port: 0, host })
  await once(server, 'listening')
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

/** Resolves when the socket closes, with or without an error. */
export async function closing(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()))
}

/** Without a host it listens on 0.0.0.0, 127.0.0.0/8, ::1 and the network addresses of this machine. */
export async function everywhere(): Promise<Listener> {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  const port = await listening(server)
  return { port, connections: () => connections }
}

export interface Poster {
  readonly post: (what: Partial<PostRequest> & { readonly url: string }) => Promise<PostResult>
  readonly agent: ReturnType<typeof guardedAgent>
}

export function poster(options: Partial<GuardOptions & PostDependencies> & { readonly clock?: Clock } = {}): Poster {
  const clock = options.clock ?? systemClock
  const agent = guardedAgent({ ...options, clock })
  onTestFinished(async () => agent.destroy())
  return {
    agent,
    post: async (what) =>
      post({ body: Buffer.from('{"events":[]}'), headers: {}, ...what }, { ...options, agent, clock }),
  }
}
