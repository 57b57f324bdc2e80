// `PlainCalls` lets the server decide calls that need no rules (decision 17). If the server gives up, the transaction leaves no
// trace, and the rules decide the call.
import type { Pool } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type {
  AppendCall,
  AppendReply,
  LeasedRun,
  SettleAndClaimCall,
  SettleAndClaimReply,
  Settlement,
} from '../contract/index.ts'
import type { DirectCalls, DirectResult } from '../core/store.ts'
import { Connection } from './connections.ts'
import { isServerRejection, toSluiceError } from './errors.ts'
import { PipelinedConnection } from './pipelined-connection.ts'
import { PlainArrivals } from './plain-arrivals.ts'
import { PlainTurns } from './plain-turns.ts'
import type { Db } from './row-cache.ts'
import type { ScanStarts } from './scan-start.ts'

export interface PlainCallsDependencies {
  readonly pool: Pool
  readonly name: string
  readonly schema: string
  readonly clock: Clock | undefined
  readonly isOpen: () => boolean
  /** For tests only: how to treat the next call. */
  readonly planDirect?: (() => DirectPlan) | undefined
}

/** `undo` sends the call so that the server gives up as late as it can. */
export type DirectPlan = 'do' | 'undo' | 'skip'

/** After a call that the server gave up, this many calls at most go to the rules at once; the number doubles each time. */
const MAX_BACKOFF = 16

export class PlainCalls implements DirectCalls {
  readonly #turns: PlainTurns
  readonly #arrivals: PlainArrivals
  readonly #turnLine: Line
  readonly #arrivalLine: Line
  readonly #isOpen: () => boolean
  readonly #plan: (() => DirectPlan) | undefined

  constructor({ pool, name, schema, clock, isOpen, planDirect }: PlainCallsDependencies, scanStarts: ScanStarts) {
    const now = (): Millis | undefined => clock?.now()
    const lockNamespace = `sluice/${schema}/`
    this.#turns = new PlainTurns({ name, lockNamespace, now, scanStarts })
    this.#arrivals = new PlainArrivals({ lockNamespace, now })
    this.#turnLine = new Line(pool)
    this.#arrivalLine = new Line(pool)
    this.#isOpen = isOpen
    this.#plan = planDirect
  }

  isPlain(settlement: Settlement): boolean {
    return this.#turns.isPlain(settlement)
  }

  noteClaimed(leases: readonly LeasedRun[]): void {
    this.#turns.noteClaimed(leases)
  }

  forgetRuns(runs: readonly { readonly token: number }[]): void {
    this.#turns.forgetRuns(runs)
  }

  async settleAndClaim(call: SettleAndClaimCall): Promise<DirectResult<SettleAndClaimReply> | undefined> {
    const plan = this.#turns.mayDecide(call) ? this.#planFor(this.#turnLine) : 'skip'
    if (plan === 'skip') return undefined
    const sent = plan === 'undo' ? { ...call, budget: -1 } : call
    return this.#turnLine.run((db) => this.#turns.run(db, sent))
  }

  async append(call: AppendCall): Promise<DirectResult<AppendReply> | undefined> {
    const plan = this.#planFor(this.#arrivalLine)
    if (plan === 'skip') return undefined
    return this.#arrivalLine.run((db) => this.#arrivals.run(db, call, plan === 'undo'))
  }

  #planFor(line: Line): DirectPlan {
    if (!this.#isOpen()) return 'skip'
    return this.#plan?.() ?? (line.isBackingOff ? 'skip' : 'do')
  }
}

/** `Line` is the connection on which calls of one kind follow each other. */
class Line {
  readonly #connection: PipelinedConnection
  #backoff = 0
  #left = 0

  constructor(pool: Pool) {
    this.#connection = new PipelinedConnection(pool)
  }

  /** Reading it counts down the calls that the server would most likely give up. */
  get isBackingOff(): boolean {
    return this.#left-- > 0
  }

  /** `run` returns undefined if the server gave up. */
  async run<R>(send: (db: Db) => Promise<R | undefined>): Promise<R | undefined> {
    let broken = false
    const client = await this.#connection.acquire().catch((error: unknown) => {
      throw toSluiceError(error)
    })
    try {
      const result = await send(new Connection(client, false))
      if (result !== undefined) this.#backoff = 0
      return result
    } catch (error) {
      broken = !isServerRejection(error)
      if (broken) throw toSluiceError(error)
      this.#backoff = Math.min(Math.max(1, 2 * this.#backoff), MAX_BACKOFF)
      this.#left = this.#backoff
      return undefined
    } finally {
      this.#connection.release(broken)
    }
  }
}
