// `Deadlines` holds when to ask the store about each flow: at its first known deadline, or at once after a change.
import { addDelay, NEVER, type Millis } from '../clock.ts'

/**
 * When to claim a flow again that was due but returned no run. Another transaction may have held its lane for a moment, and the end
 * of that transaction sends no hint. A flow that is paused or has no permit waits for a change or for the next poll.
 */
const RETRY_STUCK: readonly Millis[] = [20, 40, 80, 160, 320]

interface FlowDeadline {
  /** The first deadline; undefined if the flow has none. */
  due: Millis | undefined
  /** Whether something changed since the last call to the store. */
  changed: boolean
  /** The flow was due but returned no run, e.g. because it is paused. The loop asks again then, or after a change. */
  stuckUntil: Millis
  /** How many claims in a row returned no run although the flow was due. */
  vainClaims: number
}

export class Deadlines {
  readonly #flows = new Map<string, FlowDeadline>()

  constructor(flows: readonly string[]) {
    for (const flow of flows) this.#flows.set(flow, { due: undefined, changed: true, stuckUntil: 0, vainClaims: 0 })
  }

  markChanged(flow: string): void {
    this.#update(flow, { changed: true, stuckUntil: 0, vainClaims: 0 })
  }

  /** `setDue` stores a deadline that was read without a claim. A stuck flow may be claimed again. */
  setDue(flow: string, due: Millis | undefined): void {
    this.#update(flow, { due, stuckUntil: 0 })
  }

  /** `recordReply` stores the deadline after a claim. `inVain` means that the claim returned no run. */
  recordReply(flow: string, due: Millis | undefined, inVain: boolean, now: Millis): void {
    const isStuck = inVain && due !== undefined && due <= now
    const vainClaims = isStuck ? (this.#flows.get(flow)?.vainClaims ?? 0) + 1 : 0
    const retryAfter = RETRY_STUCK[vainClaims - 1] ?? NEVER
    this.#update(flow, { due, vainClaims, stuckUntil: isStuck ? addDelay(now, retryAfter) : 0 })
  }

  hasPassed(flow: string, now: Millis): boolean {
    const due = this.#flows.get(flow)?.due
    return due !== undefined && due <= now
  }

  /** `markStuck` postpones claims of the flow until `until` or until something changes. */
  markStuck(flow: string, until: Millis): void {
    this.#update(flow, { changed: false, stuckUntil: until })
  }

  isStuck(flow: string): boolean {
    return (this.#flows.get(flow)?.stuckUntil ?? 0) > 0
  }

  markAsked(flow: string): void {
    this.#update(flow, { changed: false })
  }

  isChanged(flow: string): boolean {
    return this.#flows.get(flow)?.changed === true
  }

  /** `isDue` returns whether the loop should ask the store about the flow now. */
  isDue(flow: string, now: Millis): boolean {
    const state = this.#flows.get(flow)
    if (state === undefined) return false
    return state.changed || nextAskAt(state) <= now
  }

  /** `next` returns the first time at which any of the flows is due without a change. */
  next(flows: readonly string[]): Millis | undefined {
    const next = Math.min(...flows.map((flow) => nextAskAt(this.#flows.get(flow))))
    return next < NEVER ? next : undefined
  }

  #update(flow: string, change: Partial<FlowDeadline>): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, change)
  }
}

function nextAskAt(state: FlowDeadline | undefined): Millis {
  if (state === undefined) return NEVER
  return state.stuckUntil > 0 ? state.stuckUntil : (state.due ?? NEVER)
}
