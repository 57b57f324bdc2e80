// `ConnectionLimiter` bounds the open connections of one address and of all together, so that a sender with masses of
// connections cannot keep others out (R4).
import type { Server as HttpServer } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { AnyListener } from '../observe/emitter.ts'
import { toNetwork } from '../receive/rate.ts'
import { IdleConnections } from './idle-connections.ts'
import type { IsTrusted } from './trusted-proxies.ts'

export interface ConnectionLimiterDependencies {
  readonly maxPerAddress: number
  /** The bound for all addresses together. */
  readonly total: number
  /** A trusted proxy is not bounded: all senders behind it share its address. */
  readonly isTrusted: IsTrusted
  readonly emit: AnyListener
}

export interface ConnectionCounts {
  readonly open: number
  /** The number of connections closed at once since the server started: a bound was reached, and no other connection
      could be closed instead. */
  readonly refused: number
  /** The number of idle connections closed since the server started to make room, longest idle first. */
  readonly closedIdle: number
  /** The number of connections closed since the server started to make room, while their bodies were still arriving. */
  readonly closedSlow: number
}

/** As a share of all connections: above it, a new connection closes the one that is idle longest. */
const CLOSE_IDLE_ABOVE = 0.9
/** As a share of all connections: below it, the alert is cleared. */
const CLEAR_ALERT_BELOW = 0.8

export class ConnectionLimiter {
  readonly #deps: ConnectionLimiterDependencies
  readonly #open = new Map<string, number>()
  readonly #alerted = new Set<string>()
  readonly #idle = new IdleConnections()
  #openNow = 0
  #refused = 0
  #closedIdle = 0
  #closedSlow = 0
  #isFull = false

  constructor(deps: ConnectionLimiterDependencies) {
    this.#deps = deps
  }

  get counts(): ConnectionCounts {
    return { open: this.#openNow, refused: this.#refused, closedIdle: this.#closedIdle, closedSlow: this.#closedSlow }
  }

  /** `follow` observes the requests. Call it after all listeners of the server are set. */
  follow(server: HttpServer): void {
    this.#idle.follow(server)
  }

  /** `guard` runs before HTTP or TLS sees a connection: no byte of a rejected connection is read. */
  guard(server: Server): void {
    const others = server.listeners('connection')
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      if (!this.#admit(socket) || !this.#makeRoom(socket)) {
        this.#refused++
        return void socket.destroy()
      }
      this.#track(socket)
      for (const listener of others) Reflect.apply(listener, server, [socket])
    })
  }

  #admit(socket: Socket): boolean {
    const { remoteAddress } = socket
    const network = toNetwork(remoteAddress ?? '')
    const open = this.#open.get(network) ?? 0
    if (open >= this.#deps.maxPerAddress && !this.#deps.isTrusted(remoteAddress)) {
      this.#raiseAlert(network, remoteAddress ?? '')
      return false
    }
    return true
  }

  #track(socket: Socket): void {
    const network = toNetwork(socket.remoteAddress ?? '')
    this.#openNow++
    this.#open.set(network, (this.#open.get(network) ?? 0) + 1)
    // A connection that was closed to make room is released before its `close` event.
    let isOpen = true
    const leave = (): void => {
      if (isOpen) this.#release(network)
      isOpen = false
    }
    this.#idle.track(socket, leave)
    socket.once('close', leave)
  }

  /** `#makeRoom` closes the connection that is idle longest when nearly all are open. Otherwise a few networks at
      their bounds would keep everybody else out. It returns false if all are open and none can be closed. */
  #makeRoom(newcomer: Socket): boolean {
    const { total, emit } = this.#deps
    if (this.#openNow < Math.floor(total * CLOSE_IDLE_ABOVE)) return true
    const open = this.#openNow
    if (this.#idle.closeLongest()) this.#closedIdle++
    else if (open >= total && this.#closeSlowest(newcomer)) this.#closedSlow++
    if (!this.#isFull) {
      this.#isFull = true
      const text = `${open} of ${total} connections are open; each new one closes the one that is idle longest.`
      emit('alert.raised', { alert: 'connections', text })
    }
    return this.#openNow < total
  }

  /** `#closeSlowest` takes the connection from the network with the most, unless that is the newcomer's own: senders of
      slow bodies make room for others, and never others for them. */
  #closeSlowest({ remoteAddress }: Socket): boolean {
    const own = toNetwork(remoteAddress ?? '')
    let [largest, most] = [own, this.#open.get(own) ?? 0]
    for (const [network, open] of this.#open) if (open > most) [largest, most] = [network, open]
    if (largest === own) return false
    return this.#idle.closeSlowest((socket) => toNetwork(socket.remoteAddress ?? '') === largest)
  }

  #release(network: string): void {
    this.#openNow--
    if (this.#isFull && this.#openNow < this.#deps.total * CLEAR_ALERT_BELOW) {
      this.#isFull = false
      this.#deps.emit('alert.cleared', { alert: 'connections', text: `${this.#openNow} connections are open.` })
    }
    const left = (this.#open.get(network) ?? 0) - 1
    if (left > 0) return void this.#open.set(network, left)
    this.#open.delete(network)
    if (!this.#alerted.delete(network)) return
    this.#deps.emit('alert.cleared', {
      alert: toAlertName(network),
      text: 'All connections of the address are closed.',
    })
  }

  /** `#raiseAlert` alerts once until all connections of the network are closed: at the bound, connections come and
      go all the time. */
  #raiseAlert(network: string, address: string): void {
    if (this.#alerted.has(network)) return
    this.#alerted.add(network)
    const fix = 'List it in trustProxy of listen if it is a proxy, or raise connectionsPerAddress.'
    const text = `${address} has ${this.#deps.maxPerAddress} connections open; further ones are closed. ${fix}`
    this.#deps.emit('alert.raised', { alert: toAlertName(network), text })
  }
}

function toAlertName(network: string): string {
  return `connections:${network}`
}
