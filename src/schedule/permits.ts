// `concurrency: n` is n permits in the store, shared by all processes (L20). A permit must last longer than the runs under
// it: a process that cannot renew it stops claiming before that.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { WorkStore } from '../store/contract/index.ts'

interface Held {
  readonly granted: number
  /** On the monotonic clock. */
  readonly until: Millis
}

export interface PermitParts {
  readonly store: Pick<WorkStore, 'permits'>
  readonly clock: Clock
  readonly process: string
  /** Of a run. */
  readonly lease: Millis
}

/** Longer than the runs under it, and not much: those of a dead process hold up all others until they end. */
const LASTS_LONGER = 1_000

export class Permits {
  readonly #parts: PermitParts
  readonly #held = new Map<string, Held>()

  constructor(parts: PermitParts) {
    this.#parts = parts
  }

  /** How many runs of the flow this process may have. */
  of(flow: Flow): number {
    if (!needed(flow)) return Infinity
    const held = this.#held.get(flow.name)
    return held === undefined || held.until - this.#parts.clock.monotonic() < this.#parts.lease ? 0 : held.granted
  }

  /** Asks for those of the flows that are not held, or not for long enough. */
  async ensure(flows: readonly Flow[]): Promise<void> {
    const lacking = flows.filter((flow) => needed(flow) && this.of(flow) === 0)
    if (lacking.length > 0) await this.#ask(lacking)
  }

  /** Keeps those that are in use. */
  async renew(inUse: (flow: string) => boolean, flows: readonly Flow[]): Promise<void> {
    await this.#ask(flows.filter((flow) => this.#held.has(flow.name) && inUse(flow.name)))
  }

  async release(flows: readonly Flow[]): Promise<void> {
    const held = flows.filter((flow) => this.#held.has(flow.name))
    if (held.length === 0) return
    for (const flow of held) this.#held.delete(flow.name)
    const wants = held.map((flow) => ({ name: flow.name, want: 0, max: flow.concurrency }))
    await this.#parts.store.permits({ process: this.#parts.process, lease: 0, wants })
  }

  async #ask(flows: readonly Flow[]): Promise<void> {
    if (flows.length === 0) return
    const { store, clock, process, lease } = this.#parts
    const sent = clock.monotonic()
    const lasts = lease + LASTS_LONGER
    const wants = flows.map((flow) => ({ name: flow.name, want: flow.concurrency, max: flow.concurrency }))
    const { granted } = await store.permits({ process, lease: lasts, wants })
    for (const [at, flow] of flows.entries()) {
      this.#held.set(flow.name, { granted: granted[at] ?? 0, until: sent + lasts })
    }
  }
}

/** With shares the store counts what each group has. */
function needed(flow: Flow): boolean {
  return flow.concurrency < Infinity && flow.share === undefined
}
