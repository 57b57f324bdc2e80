// When a flow has to be looked at next: its first deadline as the store last said, or at once when something changed.
import { NEVER, type Millis } from '../clock.ts'

interface State {
  /** Undefined: nothing waits for time. */
  due: Millis | undefined
  /** Something changed since the store was asked. */
  changed: boolean
  /** It was due and gave nothing: paused, held back, or taken by others. Asked again when something changes, or then. */
  stuckUntil: Millis
}

export class Deadlines {
  readonly #flows = new Map<string, State>()

  constructor(flows: readonly string[]) {
    for (const flow of flows) this.#flows.set(flow, { due: undefined, changed: true, stuckUntil: 0 })
  }

  changed(flow: string): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { changed: true, stuckUntil: 0 })
  }

  /** Its first deadline, without asking for runs. What was stuck may no longer be. */
  seen(flow: string, due: Millis | undefined): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { due, stuckUntil: 0 })
  }

  /** What the store answered; `inVain`: runs were asked for, and none was given. */
  heard(flow: string, due: Millis | undefined, inVain: boolean, now: Millis): void {
    const state = this.#flows.get(flow)
    const stuck = inVain && due !== undefined && due <= now
    if (state !== undefined) Object.assign(state, { due, stuckUntil: stuck ? NEVER : 0 })
  }

  hasPassed(flow: string, now: Millis): boolean {
    const due = this.#flows.get(flow)?.due
    return due !== undefined && due <= now
  }

  /** Nothing can be had of it until something changes, or until then. */
  stuck(flow: string, until: Millis): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { changed: false, stuckUntil: until })
  }

  isStuck(flow: string): boolean {
    return (this.#flows.get(flow)?.stuckUntil ?? 0) > 0
  }

  asked(flow: string): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) state.changed = false
  }

  isChanged(flow: string): boolean {
    return this.#flows.get(flow)?.changed === true
  }

  /** Whether the store should be asked for work of the flow. */
  isDue(flow: string, now: Millis): boolean {
    const state = this.#flows.get(flow)
    if (state === undefined) return false
    return state.changed || asksAt(state) <= now
  }

  /** The next moment at which one of these is due by itself. */
  next(flows: readonly string[]): Millis | undefined {
    const next = Math.min(...flows.map((flow) => asksAt(this.#flows.get(flow))))
    return next < NEVER ? next : undefined
  }
}

function asksAt(state: State | undefined): Millis {
  if (state === undefined) return NEVER
  return state.stuckUntil > 0 ? state.stuckUntil : (state.due ?? NEVER)
}
