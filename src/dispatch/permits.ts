// `Permits` leases the permits of flows with `concurrency: n`: n permits in the store, shared by all processes (L20). A permit must
// outlast the runs under it, so a process that cannot renew its permits stops claiming in time.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { WorkStore } from '../store/contract/index.ts'

interface HeldPermits {
  readonly granted: number
  /** When the process requested the permits and when they expire, on the monotonic clock. */
  readonly askedAt: Millis
  readonly until: Millis
}

/** `RoomFor` returns how many runs of the flow fit into this process. */
type RoomFor = (flow: Flow) => number

export interface PermitsDependencies {
  readonly store: Pick<WorkStore, 'leasePermits'>
  readonly clock: Clock
  readonly process: string
  /** The length of a run's lease. */
  readonly lease: Millis
}

/** Permits outlast runs by little, because the permits of a dead process block the others until they expire. */
const LEASE_MARGIN = 1_000
/** A process asks again after this time, because a permit released elsewhere sends no hint. */
const ASK_INTERVAL = 1_000

export class Permits {
  readonly #deps: PermitsDependencies
  readonly #held = new Map<string, HeldPermits>()
  /** Calls run one at a time, because an overtaken reply would overwrite a newer one with stale numbers. */
  #lastCall: Promise<unknown> = Promise.resolve()

  constructor(deps: PermitsDependencies) {
    this.#deps = deps
  }

  /** `maxRuns` returns how many runs of the flow this process may have under its permits. */
  maxRuns(flow: Flow): number {
    if (!needsPermits(flow)) return Infinity
    const held = this.#held.get(flow.name)
    return held === undefined || held.until - this.#deps.clock.monotonic() < this.#deps.lease ? 0 : held.granted
  }

  /** `canAskMore` returns whether a request could return more permits than this process holds. */
  canAskMore(flow: Flow): boolean {
    if (!needsPermits(flow)) return false
    const held = this.#held.get(flow.name)
    if (held === undefined || this.maxRuns(flow) === 0) return true
    return held.granted < flow.concurrency && this.#deps.clock.monotonic() - held.askedAt >= ASK_INTERVAL
  }

  /** `outlastsRun` returns whether the permits expire after a run that is renewed now. */
  outlastsRun(flow: string): boolean {
    const held = this.#held.get(flow)
    return held === undefined || held.until - this.#deps.clock.monotonic() >= this.#deps.lease
  }

  /** `acquire` requests permits of the flows that may get more. */
  async acquire(flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    if (!flows.some((flow) => this.canAskMore(flow))) return
    await this.#serialize(() =>
      this.#request(
        flows.filter((flow) => this.canAskMore(flow)),
        roomFor,
      ),
    )
  }

  /** `renew` extends the permits in use. */
  async renew(inUse: (flow: string) => boolean, flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    const kept = (): readonly Flow[] => flows.filter((flow) => this.#held.has(flow.name) && inUse(flow.name))
    if (kept().length > 0) await this.#serialize(() => this.#request(kept(), roomFor))
  }

  async release(flows: readonly Flow[]): Promise<void> {
    if (flows.some((flow) => this.#held.has(flow.name))) await this.#serialize(() => this.#release(flows))
  }

  #serialize(call: () => Promise<void>): Promise<void> {
    const done = this.#lastCall.then(call)
    this.#lastCall = done.catch(() => {})
    return done
  }

  async #release(flows: readonly Flow[]): Promise<void> {
    const held = flows.filter((flow) => this.#held.has(flow.name))
    if (held.length === 0) return
    for (const flow of held) this.#held.delete(flow.name)
    const requests = held.map((flow) => ({ name: flow.name, want: 0, max: flow.concurrency }))
    await this.#deps.store.leasePermits({ process: this.#deps.process, lease: 0, requests })
  }

  async #request(flows: readonly Flow[], roomFor: RoomFor): Promise<void> {
    if (flows.length === 0) return
    const { store, clock, process, lease } = this.#deps
    const sent = clock.monotonic()
    const lasts = lease + LEASE_MARGIN
    const requests = flows.map((flow) => ({
      name: flow.name,
      want: Math.min(flow.concurrency, roomFor(flow)),
      max: flow.concurrency,
    }))
    // This call may give permits back: they must not be used until the reply arrives.
    for (const { name, want } of requests) this.#capAt(name, want)
    const { granted } = await store.leasePermits({ process, lease: lasts, requests })
    for (const [at, flow] of flows.entries()) {
      this.#held.set(flow.name, { granted: granted[at] ?? 0, askedAt: sent, until: sent + lasts })
    }
  }

  #capAt(flow: string, max: number): void {
    const held = this.#held.get(flow)
    if (held !== undefined && held.granted > max) this.#held.set(flow, { ...held, granted: max })
  }
}

/** With `share`, the store counts the runs of each group itself. */
function needsPermits(flow: Flow): boolean {
  return flow.concurrency < Infinity && flow.share === undefined
}
