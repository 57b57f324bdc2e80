// The limits that one call touches: each is read once and written once, with as many of its older slots as it takes.
import type { Millis } from '../../clock.ts'
import {
  FRESH_LIMIT,
  horizon,
  isAtHand,
  lacksPage,
  layAside,
  turnBack,
  type LimitNumbers,
  type LimitState,
} from '../../model/limit.ts'
import type { Work } from './work.ts'

export type NamedLimit = LimitNumbers & { readonly name: string }

export class LimitsAtHand {
  readonly #work: Work
  readonly #states = new Map<string, LimitState>()
  readonly #changed = new Set<string>()

  constructor(work: Work) {
    this.#work = work
  }

  get(name: string): LimitState {
    return this.#states.get(name) ?? this.#work.tables.limits.get(name) ?? FRESH_LIMIT
  }

  /** With the slots that say what comes next. */
  next(limit: NamedLimit): LimitState {
    return this.#back(limit.name, (state) => lacksPage(state, limit))
  }

  /** With this slot. */
  holding(limit: NamedLimit, at: Millis): LimitState {
    return this.#back(limit.name, (state) => !isAtHand(state, limit, at))
  }

  /** With all slots after the moment. */
  since(name: string, moment: Millis): LimitState {
    return this.#back(name, ({ slots }) => slots[0] === undefined || slots[0].at > moment)
  }

  #back(name: string, isLacking: (state: LimitState) => boolean): LimitState {
    let state = this.get(name)
    while (state.pages > 0 && isLacking(state)) {
      state = turnBack(state, this.#work.tables.limits.page(name, state.pages))
    }
    this.#states.set(name, state)
    return state
  }

  put(name: string, state: LimitState): void {
    this.#states.set(name, state)
    this.#changed.add(name)
  }

  /** A slot was given: what is too much to be written with each call goes into a page. */
  putGiven(limit: NamedLimit, given: LimitState): void {
    const { tables, now } = this.#work
    const split = layAside(given, limit)
    this.put(limit.name, split?.state ?? given)
    if (split === undefined) return
    tables.limits.putPage(limit.name, split.state.pages, split.page)
    tables.limits.dropPages(limit.name, horizon(given, limit, now))
  }

  save(): void {
    for (const name of this.#changed) this.#work.tables.limits.put(name, this.get(name))
    this.#changed.clear()
  }
}
