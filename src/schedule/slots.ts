// How many runs each flow of a process may begin now: flows take turns, failing lanes and suspects have slots of their own
// (L5, L12, L20, L24).
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { Claim, Lease } from '../store/contract/index.ts'

interface Taken {
  all: number
  failing: number
}

const MOST_SUSPECTS = 1
/** The lapse from which on a run is a suspect. */
const SUSPECT_LAPSES = 2

export class Slots {
  readonly #flows: readonly Flow[]
  readonly #atOnce: number
  readonly #taken = new Map<string, Taken>()
  #all = 0
  #suspects = 0
  #turn = 0

  constructor(flows: readonly Flow[], atOnce: number) {
    this.#flows = flows
    this.#atOnce = atOnce
  }

  /** The flows, another one first each time. */
  inTurn(): readonly Flow[] {
    const first = this.#turn % Math.max(1, this.#flows.length)
    return [...this.#flows.slice(first), ...this.#flows.slice(0, first)]
  }

  /** False: it must not run, for one turn brought more suspects than a process may have. It is to be given back. */
  taken(lease: Lease): boolean {
    this.#count(lease, 1)
    return lease.lapses < SUSPECT_LAPSES || this.#suspects <= MOST_SUSPECTS
  }

  /** Answers whether others than its own flow may go on now. */
  freed(lease: Lease): boolean {
    this.#count(lease, -1)
    return lease.lapses >= SUSPECT_LAPSES
  }

  isBusy(flow: Flow): boolean {
    return this.#of(flow.name).all > 0
  }

  /** How many runs this process has. */
  get inUse(): number {
    return this.#all
  }

  get isFull(): boolean {
    return this.#all >= this.#atOnce
  }

  /** How many runs the flow may have here, those it has included, as far as this process is concerned. */
  roomFor(flow: Flow): number {
    return this.#atOnce - this.#all + this.#of(flow.name).all
  }

  free(flow: Flow, permits: number): number {
    return Math.max(0, Math.min(this.#atOnce - this.#all, permits - this.#of(flow.name).all))
  }

  claims(due: readonly Flow[], permitsOf: (flow: Flow) => number, lease: Millis): readonly Claim[] {
    this.#turn++
    let left = this.#atOnce - this.#all
    return due.map((flow, at) => {
      const fair = Math.ceil(left / (due.length - at))
      const slots = Math.min(fair, this.free(flow, permitsOf(flow)))
      left -= slots
      return this.#claim(flow, slots, permitsOf(flow), lease)
    })
  }

  #claim(flow: Flow, slots: number, permits: number, lease: Millis): Claim {
    const most = Math.max(1, Math.floor(Math.min(permits, this.#atOnce) / 4))
    return {
      flow: flow.name,
      slots,
      failing: Math.min(slots, Math.max(0, most - this.#of(flow.name).failing)),
      suspects: Math.max(0, MOST_SUSPECTS - this.#suspects),
      perGroup: flow.share === undefined ? undefined : Math.min(flow.concurrency, this.#atOnce),
      block: flow.onDead === 'block',
      take: flow.take,
      maxEvents: flow.maxEvents,
      maxBytes: flow.maxBytes,
      lease,
    }
  }

  #of(flow: string): Taken {
    let taken = this.#taken.get(flow)
    if (taken === undefined) this.#taken.set(flow, (taken = { all: 0, failing: 0 }))
    return taken
  }

  #count(lease: Lease, by: 1 | -1): void {
    const taken = this.#of(lease.flow)
    taken.all += by
    if (lease.tries > 0) taken.failing += by
    if (lease.lapses >= SUSPECT_LAPSES) this.#suspects += by
    this.#all += by
  }
}
