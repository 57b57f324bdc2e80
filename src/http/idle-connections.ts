// `IdleConnections` finds connections that can be closed to make room: those without an active request, the longest idle
// first, and those that are still receiving a body, the oldest request first. A connection is idle from the moment it is
// accepted: a sender that has not finished its TLS handshake or its headers has no request yet.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export class IdleConnections {
  /** In the order in which they became idle. */
  readonly #idle = new Set<Socket>()
  readonly #leave = new WeakMap<Socket, () => void>()
  /** The number of active requests: a sender may send the next one before the first has its response. */
  readonly #requests = new Map<Socket, number>()
  /** The request of each busy connection, in the order in which the requests began. */
  readonly #receiving = new Map<Socket, IncomingMessage>()
  /** The accepted socket of each connection, by `connectionId`. With TLS, requests come from another socket that
      wraps it. */
  readonly #accepted = new Map<string, Socket>()

  /** `follow` must come after all other listeners of the server, because one of them replaces its predecessors. */
  follow(server: Server): void {
    server.on('secureConnection', (socket: Socket) => this.#onSecured(socket))
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      // Read now: a request that has ended may have lost its socket.
      const { socket } = request
      this.#onRequest(socket, request)
      response.once('close', () => this.#onResponse(socket))
    })
  }

  /** `leave` is called when the connection is closed to make room, before its `close` event. */
  track(socket: Socket, leave: () => void): void {
    this.#leave.set(socket, leave)
    const end = connectionId(socket)
    this.#idle.add(socket)
    this.#accepted.set(end, socket)
    socket.once('close', () => {
      this.#idle.delete(socket)
      this.#requests.delete(socket)
      this.#receiving.delete(socket)
      if (this.#accepted.get(end) === socket) this.#accepted.delete(end)
    })
  }

  /** `closeLongest` returns false if no connection is idle. */
  closeLongest(): boolean {
    for (const socket of this.#idle) {
      this.#idle.delete(socket)
      if (socket.destroyed) continue
      this.#close(socket)
      return true
    }
    return false
  }

  /** `closeSlowest` closes the matching connection whose body has been arriving for longest. It returns false if no
      connection matches. */
  closeSlowest(matches: (socket: Socket) => boolean): boolean {
    for (const [socket, request] of this.#receiving) {
      if (socket.destroyed || request.complete || !matches(socket)) continue
      this.#receiving.delete(socket)
      this.#close(socket)
      return true
    }
    return false
  }

  #close(socket: Socket): void {
    this.#leave.get(socket)?.()
    socket.destroy()
  }

  #onSecured(socket: Socket): void {
    const accepted = this.#accepted.get(connectionId(socket))
    // The connection was closed meanwhile, and so was the socket that wraps it.
    if (accepted === undefined) return
    this.#idle.delete(accepted)
    this.track(socket, () => this.#leave.get(accepted)?.())
  }

  #onRequest(socket: Socket, request: IncomingMessage): void {
    this.#idle.delete(socket)
    this.#receiving.delete(socket)
    this.#receiving.set(socket, request)
    this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1)
  }

  #onResponse(socket: Socket): void {
    const left = (this.#requests.get(socket) ?? 0) - 1
    if (left > 0) return void this.#requests.set(socket, left)
    this.#requests.delete(socket)
    this.#receiving.delete(socket)
    if (!socket.destroyed) this.#idle.add(socket)
  }
}

/** `connectionId` is the same for the two sockets of one TLS connection. */
function connectionId({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
