// A store between one app and PostgreSQL. It records claims, renewals and settlements, and can stall, like the network of a
// process whose network is down for a while.
import { setTimeout } from 'node:timers/promises'
import type {
  RenewCall,
  RenewReply,
  Store,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import type { Ledger } from './ledger.ts'
import { noteError } from './patient.ts'

export class WatchedStore {
  readonly store: Store
  readonly #app: string
  readonly #bare: Store
  readonly #ledger: Ledger
  /** Calls wait for this promise. */
  #open: Promise<unknown> = Promise.resolve()
  /** When a request was first sent: it may have been executed although its reply was lost. */
  readonly #sent = new Map<number, number>()

  constructor(app: string, bare: Store, ledger: Ledger) {
    this.#app = app
    this.#bare = bare
    this.#ledger = ledger
    this.store = new Proxy(bare, {
      get: (target, name: keyof Store): unknown => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        if (name === 'listen' || name === 'close') return member.bind(target) as unknown
        if (name === 'settleAndClaim') return (call: SettleAndClaimCall) => this.#asked(name, () => this.#turn(call))
        if (name === 'renew') return (call: RenewCall) => this.#asked(name, () => this.#renew(call))
        return (...args: unknown[]) => this.#asked(name, () => Reflect.apply(member, target, args) as Promise<unknown>)
      },
    })
  }

  /** No call of the app reaches the store for this long. */
  async standStill(ms: number): Promise<void> {
    this.#open = setTimeout(ms)
    await this.#open
  }

  async #asked<T>(name: string, call: () => Promise<T>): Promise<T> {
    await this.#open
    try {
      return await call()
    } catch (error) {
      noteError(this.#ledger, `${name} of ${this.#app}`, error)
      throw error
    }
  }

  async #turn(call: SettleAndClaimCall): Promise<SettleAndClaimReply> {
    const now = Date.now()
    const sent = this.#sent.get(call.request) ?? now
    this.#sent.set(call.request, sent)
    const settling = call.settle.flatMap(({ token }) => this.#ledger.byToken(token) ?? [])
    for (const [at, lease] of settling.entries()) {
      lease.settling ??= now
      lease.settles++
      lease.outcome = call.settle[at]?.outcome
      lease.published = call.settle[at]?.publish.map(({ id }) => id) ?? []
      lease.answer = 'unknown'
    }
    const reply = await this.#bare.settleAndClaim(call)
    this.#sent.delete(call.request)
    for (const [at, lease] of settling.entries()) {
      const answer = reply.settled[at]
      // An earlier try may have been executed without its reply arriving.
      lease.answer = answer === 'lost' && lease.settles > 1 ? 'unknown' : answer
    }
    for (const { run } of reply.crashed) this.#ledger.crashed.add(run)
    this.#claimed(reply, sent)
    return reply
  }

  #claimed({ claimed }: SettleAndClaimReply, sent: number): void {
    for (const lease of claimed) {
      const { lane, flow, group, runId: run, parent, token, isDeadLetter, superseded, until } = lease
      this.#ledger.claimed({
        app: this.#app,
        lane,
        flow,
        group,
        run,
        parent,
        token,
        deadLetter: isDeadLetter,
        superseded,
        until,
        sent,
        events: lease.events.map(({ id }) => id),
        at: Date.now(),
        entered: undefined,
        left: undefined,
        how: undefined,
        wasAborted: false,
        settling: undefined,
        settles: 0,
        outcome: undefined,
        published: [],
        answer: undefined,
      })
    }
  }

  async #renew(call: RenewCall): Promise<RenewReply> {
    const reply = await this.#bare.renew(call)
    for (const [at, { token }] of call.runs.entries()) {
      const lease = this.#ledger.byToken(token)
      if (lease !== undefined && reply.results[at] !== 'lost') lease.until = reply.now + call.lease
    }
    return reply
  }
}
