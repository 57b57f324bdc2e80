// A store that records its settle-and-claim calls in the ledger. Through it, a process that was stopped settles runs that it no
// longer holds.
import type {
  LeasedRun,
  Settlement,
  Store,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import { now, type Line } from '../../engine-kill/load.ts'

type Tell = (line: Line) => void

export class WatchedStore {
  readonly store: Store
  readonly #bare: Store
  readonly #tell: Tell
  /** Leases that were claimed and not settled. */
  readonly #held = new Map<number, LeasedRun>()
  /** When a request was first sent: it may have been executed although its reply was lost. */
  readonly #sent = new Map<string, number>()
  #stale = 0

  constructor(bare: Store, tell: Tell) {
    this.#bare = bare
    this.#tell = tell
    this.store = new Proxy(bare, {
      get: (target, name: keyof Store) => {
        if (name === 'settleAndClaim') return (call: SettleAndClaimCall) => this.#turn(call)
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
  }

  async #turn(call: SettleAndClaimCall): Promise<SettleAndClaimReply> {
    const name = `${call.process} ${call.request}`
    const sent = this.#sent.get(name) ?? now()
    this.#sent.set(name, sent)
    for (const { token } of call.settle) this.#held.delete(token)
    const reply = await this.#bare.settleAndClaim(call)
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

  /** The process was stopped for longer than a lease; it settles everything it held as done, as if it did not know. */
  async settleStale(process: string): Promise<void> {
    const settle = Array.from(this.#held.values(), ({ lane, token }): Settlement => {
      const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
      return { lane, token, outcome: { kind: 'done' }, ...end }
    })
    this.#held.clear()
    if (settle.length === 0) return
    const call = { process: `${process} stale`, request: ++this.#stale, routes: 0, settle, claim: [], budget: 0 }
    const { settled } = await this.#bare.settleAndClaim(call)
    for (const [at, { lane, token }] of settle.entries()) {
      this.#tell({ kind: 'stale', at: now(), lane, token, answer: settled[at] ?? '' })
    }
  }
}
