// The ledger of a torture test, seen from outside the store: what publishers, handlers and operators did and which replies they
// got, and what each store was asked to claim and settle. The checker compares the tables with it.
import type { RunOutcome } from '../../../src/model/settle.ts'
import type { SettleResult } from '../../../src/store/contract/index.ts'
import type { Input } from './plan.ts'

/** How a handler ended; `gave-up` means that it returned after its `commit` had returned `cancelled`. */
export type How =
  | 'done'
  | 'snooze'
  | 'retry'
  | 'drop'
  | 'partial'
  | 'throw'
  | 'permanent'
  | 'nonsense'
  | 'aborted'
  | 'gave-up'

/** One published event. Times are those of the machine's clock. */
export interface Sent {
  readonly input: Input
  /** The events of one publisher and one transaction keep their order. */
  readonly publisher: string
  readonly n: number
  /** The event is placed some time after it is stored. */
  readonly isPlacedLate: boolean
  /** The event was placed by itself, at any time after the other events of its publisher. */
  readonly isPlacedAlone: boolean
  readonly began: number
  /** When the event was known to be stored; undefined if that is unknown. */
  acked: number | undefined
  /** The event was published in a transaction that was rolled back. */
  rolledBack: boolean
  /** How often it was sent again with the result `duplicate` or `conflict`, and how often without a reply. */
  receipts: number
  unknown: number
}

/** One lease: a claim and its outcome. */
export interface Lease {
  readonly app: string
  readonly lane: string
  readonly flow: string
  readonly group: string
  readonly run: string
  readonly parent: string
  readonly token: number
  readonly deadLetter: boolean
  readonly superseded: number
  readonly events: readonly string[]
  /** When the claim was sent, and when its reply arrived. */
  readonly sent: number
  readonly at: number
  /** The end of the lease, as far as the process knows. */
  until: number
  entered: number | undefined
  left: number | undefined
  how: How | undefined
  /** The handler's signal was aborted before the handler ended. */
  wasAborted: boolean
  settling: number | undefined
  settles: number
  outcome: RunOutcome | undefined
  /** The ids of the events that the handler published. */
  published: readonly string[]
  /** `unknown` means that the settlement may have been executed or not. */
  answer: SettleResult | 'unknown' | undefined
}

export type Action = 'drop-lane' | 'purge-lane' | 'purge-event' | 'purge-tenant' | 'drop-dead-letter' | 'hold' | 'pause'

/** An act of an operator. */
export interface Acted {
  readonly action: Action
  /** The id of a lane or an event, a tenant, the id of a dead letter, or a flow. */
  readonly target: string
  readonly began: number
  /** When the last try began, which is the one that succeeded. */
  lastBegan: number
  ended: number
  /** Undefined if the outcome is unknown. */
  answer: string | undefined
  /** When an operator began to end the hold or pause. */
  undone: number
}

export class Ledger {
  readonly sent = new Map<string, Sent>()
  readonly leases: Lease[] = []
  readonly acts: Acted[] = []
  /** Runs that a claim found with one lapse too many. */
  readonly crashed = new Set<string>()
  /** Faults that were detected at once. */
  readonly wrong: string[] = []
  /** The lease of the next handler, by app and run. */
  readonly #current = new Map<string, Lease>()
  readonly #byToken = new Map<number, Lease>()

  get stored(): readonly Sent[] {
    return [...this.sent.values()].filter(({ acked }) => acked !== undefined)
  }

  claimed(lease: Lease): void {
    // A repeated claim gets the same reply.
    if (this.#byToken.has(lease.token)) return
    this.#byToken.set(lease.token, lease)
    this.#current.set(`${lease.app} ${lease.run}`, lease)
    this.leases.push(lease)
  }

  byToken(token: number): Lease | undefined {
    return this.#byToken.get(token)
  }

  current(app: string, run: string): Lease | undefined {
    return this.#current.get(`${app} ${run}`)
  }

  act(action: Action, target: string): Acted {
    const began = Date.now()
    const act = { action, target, began, lastBegan: began, ended: Infinity, answer: undefined, undone: Infinity }
    this.acts.push(act)
    return act
  }
}
