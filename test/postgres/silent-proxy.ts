// A proxy between a process and its PostgreSQL that can fall silent, like a network that has forgotten a connection: data is
// lost and neither side is notified. Later connections work.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { listenInPlaceOf } from './proxy-address.ts'

export interface SilentProxy {
  /** The server's address, through the proxy. */
  readonly url: string
  fallSilent(): void
  close(): Promise<void>
}

export async function silentProxy(url: string): Promise<SilentProxy> {
  const to = new URL(url)
  const sockets = new Set<Socket>()
  // A closing handshake gets no reply either.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ port: Number(to.port), host: to.hostname, allowHalfOpen: true })
    const pair = [client, upstream]
    const end = (): void => pair.forEach((socket) => socket.destroy())
    for (const socket of pair) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    client.on('close', end).pipe(upstream)
    upstream.on('close', end).pipe(client)
  })
  return {
    url: await listenInPlaceOf(url, server),
    fallSilent() {
      for (const socket of sockets) {
        socket.unpipe()
        socket.removeAllListeners('close').on('close', () => sockets.delete(socket))
        socket.resume()
      }
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
