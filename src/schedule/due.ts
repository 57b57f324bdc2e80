// When a flow has to be looked at next: its first deadline as the store last said, or at once when something changed.
import type { Millis } from '../clock.ts'

interface State {
  /** Undefined: nothing waits for time. */
  due: Millis | undefined
  /** Something changed since the store was asked. */
  changed: boolean
  /** It was due and gave nothing: paused, held back, or taken by others. Asked again when something changes. */
  stuck: boolean
}

export class Deadlines {
  readonly #flows = new Map<string, State>()

  constructor(flows: readonly string[]) {
    for (const flow of flows) this.#flows.set(flow, { due: undefined, changed: true, stuck: false })
  }

  changed(flow: string): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { changed: true, stuck: false })
  }

  /** Its first deadline, without asking for runs. What was stuck may no longer be. */
  seen(flow: string, due: Millis | undefined): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { due, stuck: false })
  }

  /** What the store answered; `inVain`: runs were asked for, and none was given. */
  heard(flow: string, due: Millis | undefined, inVain: boolean, now: Millis): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { due, stuck: inVain && due !== undefined && due <= now })
  }

  hasPassed(flow: string, now: Millis): boolean {
    const due = this.#flows.get(flow)?.due
    return due !== undefined && due <= now
  }

  /** Nothing can be had of it until something changes. */
  stuck(flow: string): void {
    const state = this.#flows.get(flow)
    if (state !== undefined) Object.assign(state, { changed: false, stuck: true })
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
    return state.changed || (!state.stuck && state.due !== undefined && state.due <= now)
  }

  /** The next moment at which one of these is due by itself. */
  next(flows: readonly string[]): Millis | undefined {
    const dues = flows.flatMap((flow) => {
      const state = this.#flows.get(flow)
      return state === undefined || state.stuck || state.due === undefined ? [] : state.due
    })
    return dues.length === 0 ? undefined : Math.min(...dues)
  }
}
