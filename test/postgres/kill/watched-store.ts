// A store whose turns are told to the ledger, and by way of which a process that stood still settles what it no longer has.
import type { Lease, Settle, Store, TurnCall, TurnReply } from '../../../src/store/contract/index.ts'
import { now, type Line } from '../../engine-kill/load.ts'

type Tell = (line: Line) => void

export class WatchedStore {
  readonly store: Store
  readonly #bare: Store
  readonly #tell: Tell
  /** Leases that were given and not settled. */
  readonly #held = new Map<number, Lease>()
  /** When a request was sent first: it may have been done though its answer was lost. */
  readonly #sent = new Map<string, number>()
  #stale = 0

  constructor(bare: Store, tell: Tell) {
    this.#bare = bare
    this.#tell = tell
    this.store = new Proxy(bare, {
      get: (target, name: keyof Store) => {
        if (name === 'turn') return (call: TurnCall) => this.#turn(call)
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
  }

  async #turn(call: TurnCall): Promise<TurnReply> {
    const name = `${call.process} ${call.request}`
    const sent = this.#sent.get(name) ?? now()
    this.#sent.set(name, sent)
    for (const { token } of call.settle) this.#held.delete(token)
    const reply = await this.#bare.turn(call)
    this.#sent.delete(name)
    for (const lease of reply.claimed) this.#held.set(lease.token, lease)
    this.#tell({
      kind: 'turned',
      sent,
      at: now(),
      settled: call.settle.map(({ lane, token }, at) => [lane, token, reply.settled[at] ?? '']),
      claimed: reply.claimed.map(({ lane, token }) => [lane, token]),
    })
    return reply
  }

  /** The process stood still for longer than a lease: says that all is done of what it had, as if it did not know. */
  async settleStale(process: string): Promise<void> {
    const settle = Array.from(this.#held.values(), ({ lane, token }): Settle => {
      const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
      return { lane, token, outcome: { kind: 'done' }, ...end }
    })
    this.#held.clear()
    if (settle.length === 0) return
    const call = { process: `${process} stale`, request: ++this.#stale, routes: 0, settle, claim: [], budget: 0 }
    const { settled } = await this.#bare.turn(call)
    for (const [at, { lane, token }] of settle.entries()) {
      this.#tell({ kind: 'stale', at: now(), lane, token, answer: settled[at] ?? '' })
    }
  }
}
