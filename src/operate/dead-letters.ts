// What could not be done: runs that died, and events that could not be routed. One, or all that a filter names (L2a, L9).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Attempt } from '../model/lane.ts'
import { onlyKnown } from '../model/options.ts'
import type { Filter, LetterRecord, MarkRecord, Store } from '../store/contract/index.ts'
import { countAll } from './count-all.ts'
import type { OperateParts, Page, Steered } from './lanes.ts'
import { contentsOf, exported, type ExportedEvent } from './letter-contents.ts'
import { laneOf } from './name-lane.ts'
import { shortPage } from './short-page.ts'

export type DeadLetter =
  | {
      readonly kind: 'run'
      readonly id: string
      readonly flow: string
      readonly key: string
      readonly tenant: string
      readonly reason: string
      readonly at: Millis
      /** `queued` and `running`: somebody had it tried again. */
      readonly state: LetterRecord['state']
      readonly tries: number
      readonly lapses: number
      /** Its lane waits for it. */
      readonly blocks: boolean
      readonly attempts: readonly Attempt[]
      readonly events: readonly string[]
    }
  | {
      readonly kind: 'unrouted'
      readonly id: string
      readonly flow: string
      readonly reason: MarkRecord['reason']
      readonly error: string
      readonly at: Millis
      readonly tries: number
      readonly events: readonly string[]
    }

export type ExportedLetter = DeadLetter & { readonly contents: readonly ExportedEvent[] }

export interface DeadFilter {
  readonly kind?: DeadLetter['kind']
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly tenant?: string
  readonly from?: Millis
  readonly to?: Millis
}

const FILTERS: ReadonlySet<string> = new Set<keyof DeadFilter>(['kind', 'flow', 'key', 'tenant', 'from', 'to'])
const MARK = 'unrouted-'
const PAGE = 200
/** A letter may have a thousand events: a page ends early when there are so many in it. */
const EVENTS_A_PAGE = 5_000
const EXPORTED_LENGTH = 4 * 1024 * 1024
const eventsOf = ({ events }: DeadLetter): number => events.length
/** As it stands in the answer. */
const lengthOf = (letter: ExportedLetter): number => JSON.stringify(letter).length

export class DeadLetters {
  readonly #parts: OperateParts

  constructor(parts: OperateParts) {
    this.#parts = parts
  }

  /** Newest first, by when they first died; of runs unless the filter says `unrouted`. */
  async list(filter: DeadFilter = {}, cursor = '', n = 100): Promise<Page<DeadLetter>> {
    const store = await this.#parts.store()
    const wanted = this.#filterOf(filter)
    if (filter.kind === 'unrouted') {
      const { items, next } = await store.find({ kind: 'marks', filter: wanted, cursor, n })
      return { items: items.map(ofMark), next }
    }
    const page = { cursor, n, weightOf: eventsOf, most: EVENTS_A_PAGE, first: 5, growth: 4 }
    return shortPage(page, async (from, some) => {
      const { items, next } = await store.find({ kind: 'dead', filter: wanted, cursor: from, n: some })
      return { items: items.map(ofLetter), next }
    })
  }

  /** How many the filter names, with those that were retried and have not ended yet. */
  async count(filter: DeadFilter = {}): Promise<number> {
    const store = await this.#parts.store()
    const kind = filter.kind === 'unrouted' ? 'marks' : 'dead'
    return countAll(store, { kind, filter: this.#filterOf(filter) })
  }

  /** With its events. */
  async show(id: string): Promise<(DeadLetter & { readonly contents: readonly FlowEvent[] }) | undefined> {
    const store = await this.#parts.store()
    const letter = await this.#get(store, id)
    return letter === undefined ? undefined : { ...letter, contents: await contentsOf(store, letter.events) }
  }

  /** The same run again, before what waits in its lane, with all its tries. */
  retry(which: string | DeadFilter): Promise<Steered | { readonly count: number }> {
    return this.#act(which, 'retry')
  }

  drop(which: string | DeadFilter): Promise<Steered | { readonly count: number }> {
    return this.#act(which, 'drop')
  }

  /** One JSON text a letter, with the events and their bytes. */
  async *export(filter: DeadFilter = {}): AsyncGenerator<string> {
    const store = await this.#parts.store()
    for await (const letter of this.#each(filter)) {
      const contents = await contentsOf(store, letter.events)
      yield JSON.stringify({ ...letter, events: contents.map(exported) })
    }
  }

  /** A page of the same. */
  async exportPage(filter: DeadFilter = {}, cursor = '', n = 20): Promise<Page<ExportedLetter>> {
    const store = await this.#parts.store()
    // One at a time: a light letter says nothing of the next, which may be a thousand times as heavy.
    const page = { cursor, n, weightOf: lengthOf, most: EXPORTED_LENGTH, first: 1, growth: 1 }
    return shortPage<ExportedLetter>(page, async (from, one) => {
      const { items, next } = await this.list(filter, from, one)
      const [letter] = items
      if (letter === undefined) return { items: [], next }
      return { items: [{ ...letter, contents: (await contentsOf(store, letter.events)).map(exported) }], next }
    })
  }

  async #act(which: string | DeadFilter, act: 'retry' | 'drop'): Promise<Steered | { readonly count: number }> {
    const store = await this.#parts.store()
    if (typeof which === 'string') {
      const [result] = await steer(store, [which], act)
      if (act === 'retry' && which.startsWith(MARK)) this.#parts.retried()
      return result ?? 'missing'
    }
    const ids: string[] = []
    for await (const letter of this.#each(which)) ids.push(letter.id)
    let count = 0
    for (let from = 0; from < ids.length; from += PAGE) {
      const results = await steer(store, ids.slice(from, from + PAGE), act)
      count += results.filter((result) => result === 'ok').length
    }
    if (act === 'retry' && which.kind === 'unrouted') this.#parts.retried()
    return { count }
  }

  async *#each(filter: DeadFilter): AsyncGenerator<DeadLetter> {
    let cursor: string | undefined = ''
    while (cursor !== undefined) {
      const page: Page<DeadLetter> = await this.list(filter, cursor, PAGE)
      yield* page.items
      cursor = page.next
    }
  }

  #filterOf(filter: DeadFilter): Filter {
    // A filter that is misread would act on everything.
    if (typeof filter !== 'object' || filter === null) throw invalid('the filter is an object, or the id of a letter.')
    onlyKnown(filter, FILTERS, 'deadLetters: ')
    const { flow, key, tenant, from, to } = filter
    if (key !== undefined && flow === undefined) throw invalid('key comes with the flow it is a key of.')
    const lane = flow !== undefined && key !== undefined ? { lane: laneOf(this.#parts.flows, flow, key) } : {}
    const given = Object.entries({ flow, tenant, from, to }).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(given), ...lane }
  }

  async #get(store: Store, id: string): Promise<DeadLetter | undefined> {
    if (id.startsWith(MARK)) {
      const { item } = await store.get({ kind: 'marks', id: id.slice(MARK.length) })
      return item === undefined ? undefined : ofMark(item)
    }
    const { item } = await store.get({ kind: 'dead', id })
    return item === undefined ? undefined : ofLetter(item)
  }
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `deadLetters: ${what}`)
}

async function steer(store: Store, ids: readonly string[], act: 'retry' | 'drop'): Promise<readonly Steered[]> {
  const marks = ids.filter((id) => id.startsWith(MARK)).map((id) => Number(id.slice(MARK.length)))
  const runs = ids.filter((id) => !id.startsWith(MARK))
  const ofRuns = runs.length === 0 ? [] : (await store.steer({ what: 'dead', ids: runs, act })).results
  const ofMarks = marks.length === 0 ? [] : (await store.steer({ what: 'marks', ids: marks, act })).results
  return [...ofRuns, ...ofMarks]
}

function ofLetter(letter: LetterRecord): DeadLetter {
  const { id, flow, key, tenant, reason, at, state, tries, lapses, blocks, attempts, events } = letter
  return { kind: 'run', id, flow, key, tenant, reason, at, state, tries, lapses, blocks, attempts, events }
}

function ofMark(mark: MarkRecord): DeadLetter {
  const { id, flow, reason, error, since, tries, event } = mark
  return { kind: 'unrouted', id: `${MARK}${id}`, flow, reason, error, at: since, tries, events: [event] }
}
