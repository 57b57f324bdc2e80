// `concurrency: n` is n permits in the store, shared by all processes (L20). A permit must last longer than the runs under
// it: a process that cannot renew it stops claiming before that.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { WorkStore } from '../store/contract/index.ts'

interface Held {
  readonly granted: number
  /** When they were asked for, and when they end, on the monotonic clock. */
  readonly asked: Millis
  readonly until: Millis
}

/** How many runs of the flow this process has room for. */
type RoomFor = (flow: Flow) => number

export interface PermitParts {
  readonly store: Pick<WorkStore, 'permits'>
  readonly clock: Clock
  readonly process: string
  /** Of a run. */
  readonly lease: Millis
}

/** Longer than the runs under it, and not much: those of a dead process hold up all others until they end. */
const LASTS_LONGER = 1_000
/** Others may have given some back, and nobody says so. */
const ASK_FOR_MORE = 1_000

export class Permits {
  readonly #parts: PermitParts
  readonly #held = new Map<string, Held>()
  /** One call at a time: an answer that another call has overtaken would say what is no longer so. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: PermitParts) {
    this.#parts = parts
  }

  /** How many runs of the flow this process may have. */
  of(flow: Flow): number {
    if (!needed(flow)) return Infinity
    const held = this.#held.get(flow.name)
    return held === undefined || held.until - this.#parts.clock.monotonic() < this.#parts.lease ? 0 : held.granted
  }

  /** Whether asking could bring more than are held. */
  mayHaveMore(flow: Flow): boolean {
    if (!needed(flow)) return false
    const held = this.#held.get(flow.name)
    if (held === undefined || this.of(flow) === 0) return true
    return held.granted < flow.concurrency && this.#parts.clock.monotonic() - held.asked >= ASK_FOR_MORE
  }

  /** Whether a run that is renewed now would end before what it runs under. */
  outlasts(flow: string): boolean {
    const held = this.#held.get(flow)
    return held === undefined || held.until - this.#parts.clock.monotonic() >= this.#parts.lease
  }

  /** Asks for those of the flows of which more may be had. */
  async ensure(flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    if (!flows.some((flow) => this.mayHaveMore(flow))) return
    await this.#inTurn(() =>
      this.#ask(
        flows.filter((flow) => this.mayHaveMore(flow)),
        roomFor,
      ),
    )
  }

  /** Keeps those that are in use. */
  async renew(inUse: (flow: string) => boolean, flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    const kept = (): readonly Flow[] => flows.filter((flow) => this.#held.has(flow.name) && inUse(flow.name))
    if (kept().length > 0) await this.#inTurn(() => this.#ask(kept(), roomFor))
  }

  async release(flows: readonly Flow[]): Promise<void> {
    if (flows.some((flow) => this.#held.has(flow.name))) await this.#inTurn(() => this.#release(flows))
  }

  #inTurn(call: () => Promise<void>): Promise<void> {
    const done = this.#last.then(call)
    this.#last = done.catch(() => {})
    return done
  }

  async #release(flows: readonly Flow[]): Promise<void> {
    const held = flows.filter((flow) => this.#held.has(flow.name))
    if (held.length === 0) return
    for (const flow of held) this.#held.delete(flow.name)
    const wants = held.map((flow) => ({ name: flow.name, want: 0, max: flow.concurrency }))
    await this.#parts.store.permits({ process: this.#parts.process, lease: 0, wants })
  }

  async #ask(flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    if (flows.length === 0) return
    const { store, clock, process, lease } = this.#parts
    const sent = clock.monotonic()
    const lasts = lease + LASTS_LONGER
    const wants = flows.map((flow) => ({
      name: flow.name,
      want: Math.min(flow.concurrency, roomFor(flow)),
      max: flow.concurrency,
    }))
    // What is about to be given back must not be used while the answer is on its way.
    for (const { name, want } of wants) this.#useAtMost(name, want)
    const { granted } = await store.permits({ process, lease: lasts, wants })
    for (const [at, flow] of flows.entries()) {
      this.#held.set(flow.name, { granted: granted[at] ?? 0, asked: sent, until: sent + lasts })
    }
  }

  #useAtMost(flow: string, most: number): void {
    const held = this.#held.get(flow)
    if (held !== undefined && held.granted > most) this.#held.set(flow, { ...held, granted: most })
  }
}

/** With shares the store counts what each group has. */
function needed(flow: Flow): boolean {
  return flow.concurrency < Infinity && flow.share === undefined
}
