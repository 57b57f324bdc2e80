// `RunCapacity` decides how many runs each flow of a process may start now. Flows take turns, and failing lanes and suspects
// have bounds of their own (L5, L12, L20, L24).
import { NEVER } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { ClaimRequest, LeasedRun } from '../store/contract/index.ts'

interface FlowUsage {
  all: number
  failing: number
}

const MAX_SUSPECTS = 1
/** A run with this many lapses is a suspect: it may be what kills the process. */
const SUSPECT_LAPSES = 2

/** `ClaimTerms` is what all claims of a call have in common. */
export type ClaimTerms = Pick<ClaimRequest, 'lease' | 'announceDeadAfter'>

export class RunCapacity {
  readonly #flows: readonly Flow[]
  readonly #maxRuns: number
  readonly #usage = new Map<string, FlowUsage>()
  #total = 0
  #suspects = 0
  #rotation = 0

  constructor(flows: readonly Flow[], maxRuns: number) {
    this.#flows = flows
    this.#maxRuns = maxRuns
  }

  /** `flowsInRotation` returns the flows, starting with a different one after each plan. */
  flowsInRotation(): readonly Flow[] {
    const first = this.#rotation % Math.max(1, this.#flows.length)
    return [...this.#flows.slice(first), ...this.#flows.slice(0, first)]
  }

  /** `take` returns false if the run must be released: one claim returned more suspects than a process may run. */
  take(lease: LeasedRun): boolean {
    this.#count(lease, 1)
    return lease.lapses < SUSPECT_LAPSES || this.#suspects <= MAX_SUSPECTS
  }

  /** `release` returns whether other flows than the run's own may continue now. */
  release(lease: LeasedRun): boolean {
    this.#count(lease, -1)
    return lease.lapses >= SUSPECT_LAPSES
  }

  isBusy(flow: Flow): boolean {
    return this.#usageOf(flow.name).all > 0
  }

  /** The number of runs of this process. */
  get inUse(): number {
    return this.#total
  }

  get isFull(): boolean {
    return this.#total >= this.#maxRuns
  }

  /** `roomFor` returns how many runs the flow may have in this process, including its current ones and ignoring permits. */
  roomFor(flow: Flow): number {
    return this.#maxRuns - this.#total + this.#usageOf(flow.name).all
  }

  freeFor(flow: Flow, permits: number): number {
    return Math.max(0, Math.min(this.#maxRuns - this.#total, permits - this.#usageOf(flow.name).all))
  }

  planClaims(due: readonly Flow[], permitsOf: (flow: Flow) => number, terms: ClaimTerms): readonly ClaimRequest[] {
    this.#rotation++
    let left = this.#maxRuns - this.#total
    return due.map((flow, at) => {
      const fair = Math.ceil(left / (due.length - at))
      const slots = Math.min(fair, this.freeFor(flow, permitsOf(flow)))
      left -= slots
      return this.#planClaim(flow, slots, permitsOf(flow), terms)
    })
  }

  #planClaim(flow: Flow, slots: number, permits: number, terms: ClaimTerms): ClaimRequest {
    const maxFailing = Math.max(1, Math.floor(Math.min(permits, this.#maxRuns) / 4))
    return {
      flow: flow.name,
      maxRuns: slots,
      maxFailing: Math.min(slots, Math.max(0, maxFailing - this.#usageOf(flow.name).failing)),
      maxSuspects: Math.max(0, MAX_SUSPECTS - this.#suspects),
      // This bound counts all processes; `slots` is the room of this one.
      maxPerGroup: flow.share === undefined ? undefined : Math.min(flow.concurrency, NEVER),
      blockOnCrash: flow.onDead === 'block',
      take: flow.take,
      maxEvents: flow.maxEvents,
      maxBytes: flow.maxBytes,
      lease: terms.lease,
      announceDeadAfter: terms.announceDeadAfter,
    }
  }

  #usageOf(flow: string): FlowUsage {
    let usage = this.#usage.get(flow)
    if (usage === undefined) this.#usage.set(flow, (usage = { all: 0, failing: 0 }))
    return usage
  }

  #count(lease: LeasedRun, by: 1 | -1): void {
    const usage = this.#usageOf(lease.flow)
    usage.all += by
    if (lease.tries > 0) usage.failing += by
    if (lease.lapses >= SUSPECT_LAPSES) this.#suspects += by
    this.#total += by
  }
}
