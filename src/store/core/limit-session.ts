// `LimitSession` reads and writes each limit once per call, with as many pages of older slots as the call needs.
import type { Millis } from '../../clock.ts'
import {
  INITIAL_LIMIT_STATE,
  computeHorizon,
  isSlotLoaded,
  needsSlotPage,
  moveSlotsToPage,
  restoreSlotPage,
  type LimitParameters,
  type LimitState,
} from '../../model/limit.ts'
import type { CommitContext } from './commit-context.ts'

export type NamedLimitParameters = LimitParameters & { readonly name: string }

export class LimitSession {
  readonly #context: CommitContext
  readonly #states = new Map<string, LimitState>()
  readonly #changed = new Set<string>()

  constructor(work: CommitContext) {
    this.#context = work
  }

  get(name: string): LimitState {
    return this.#states.get(name) ?? this.#context.tables.limits.get(name) ?? INITIAL_LIMIT_STATE
  }

  /** `loadForNextSlot` loads the slots that determine the next slot. */
  loadForNextSlot(limit: NamedLimitParameters): LimitState {
    return this.#loadPages(limit.name, (state) => needsSlotPage(state, limit))
  }

  /** `loadForSlot` loads the pages back to this slot. */
  loadForSlot(limit: NamedLimitParameters, at: Millis): LimitState {
    return this.#loadPages(limit.name, (state) => !isSlotLoaded(state, limit, at))
  }

  /** `loadSince` loads all slots after the given time. */
  loadSince(name: string, moment: Millis): LimitState {
    return this.#loadPages(name, ({ slots }) => slots[0] === undefined || slots[0].at > moment)
  }

  #loadPages(name: string, isLacking: (state: LimitState) => boolean): LimitState {
    let state = this.get(name)
    while (state.pages > 0 && isLacking(state)) {
      state = restoreSlotPage(state, this.#context.tables.limits.getPage(name, state.pages))
    }
    this.#states.set(name, state)
    return state
  }

  put(name: string, state: LimitState): void {
    this.#states.set(name, state)
    this.#changed.add(name)
  }

  /**
   * `putWithPaging` stores a limit with a new slot. It moves older slots to a page when there are too many to write with each call.
   */
  putWithPaging(limit: NamedLimitParameters, given: LimitState): void {
    const { tables, now } = this.#context
    const split = moveSlotsToPage(given, limit)
    this.put(limit.name, split?.state ?? given)
    if (split === undefined) return
    tables.limits.putPage(limit.name, split.state.pages, split.page)
    tables.limits.removePagesBefore(limit.name, computeHorizon(given, limit, now))
  }

  save(): void {
    for (const name of this.#changed) this.#context.tables.limits.put(name, this.get(name))
    this.#changed.clear()
  }
}
