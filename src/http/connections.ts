// How many connections one address may have open: whoever opens masses of them does not keep others out (R4).
import type { Server, Socket } from 'node:net'
import type { AnyListener } from '../observe/events.ts'
import { networkOf } from '../receive/request-rate.ts'
import type { IsTrusted } from './trusted-proxies.ts'

export interface ConnectionsParts {
  readonly most: number
  /** All senders behind a proxy come from its address. */
  readonly isTrusted: IsTrusted
  readonly emit: AnyListener
}

export interface ConnectionCounts {
  readonly open: number
  /** Closed at once, since the server began: their address had too many. */
  readonly refused: number
}

export class Connections {
  readonly #parts: ConnectionsParts
  readonly #open = new Map<string, number>()
  readonly #crowded = new Set<string>()
  #refused = 0

  constructor(parts: ConnectionsParts) {
    this.#parts = parts
  }

  get counts(): ConnectionCounts {
    const open = this.#open.values().reduce((sum, of) => sum + of, 0)
    return { open, refused: this.#refused }
  }

  /** Before HTTP or TLS hears of a connection: of one that is not let in no byte is read. */
  guard(server: Server): void {
    const others = server.listeners('connection')
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      if (!this.#lets(socket)) return void socket.destroy()
      for (const listener of others) Reflect.apply(listener, server, [socket])
    })
  }

  #lets(socket: Socket): boolean {
    const { remoteAddress } = socket
    const network = networkOf(remoteAddress ?? '')
    const open = this.#open.get(network) ?? 0
    if (open >= this.#parts.most && !this.#parts.isTrusted(remoteAddress)) {
      this.#refused++
      this.#tell(network, remoteAddress ?? '')
      return false
    }
    this.#open.set(network, open + 1)
    socket.once('close', () => this.#leave(network))
    return true
  }

  #leave(network: string): void {
    const left = (this.#open.get(network) ?? 0) - 1
    if (left > 0) return void this.#open.set(network, left)
    this.#open.delete(network)
    if (!this.#crowded.delete(network)) return
    this.#parts.emit('alert.cleared', { alert: alertOf(network), text: 'All of its connections are closed.' })
  }

  /** Once until all of them are gone: at the bound one comes and goes all the time. */
  #tell(network: string, address: string): void {
    if (this.#crowded.has(network)) return
    this.#crowded.add(network)
    const fix = 'List it in trustProxy of listen if it is a proxy, or raise connectionsPerAddress.'
    const text = `${address} has ${this.#parts.most} connections open; further ones are closed. ${fix}`
    this.#parts.emit('alert.raised', { alert: alertOf(network), text })
  }
}

function alertOf(network: string): string {
  return `connections:${network}`
}
