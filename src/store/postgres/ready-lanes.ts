// `ReadyLanes` records how far a transaction knows the ready lanes of each flow and health. A scan locks as many lanes as it
// asked for; lanes behind the last of them are unknown.
import type { Millis } from '../../clock.ts'
import type { Lane } from '../../model/lane.ts'
import type { ReadyQuery } from '../core/tables.ts'

export interface KnownExtent {
  /** The position of the last lane that was found; undefined before the first scan. */
  readonly last: Pick<Lane, 'due' | 'ticket'> | undefined
  /** No ready lane is behind the last one, except lanes that other transactions hold. */
  readonly isAll: boolean
}

interface KnownLine extends KnownExtent {
  /** How often the index range was scanned. */
  readonly times: number
}

const UNKNOWN_LINE: KnownLine = { last: undefined, isAll: false, times: 0 }

export class ReadyLanes {
  readonly #known = new Map<string, KnownLine>()
  readonly #pending = new Map<string, ReadyQuery>()

  /** `filterKnown` keeps the ordered lanes that no unknown lane can precede. */
  filterKnown(query: ReadyQuery, lanes: readonly Lane[]): readonly Lane[] {
    const { last, isAll } = this.#known.get(readyQueryKey(query)) ?? UNKNOWN_LINE
    if (isAll) return lanes
    return last === undefined ? [] : lanes.filter((lane) => compareByDeadline(lane, last) <= 0)
  }

  /**
   * `request` asks for more lanes. Each scan asks for twice as many as the one before, because not all found lanes may be
   * claimable.
   */
  request(query: ReadyQuery): void {
    const name = readyQueryKey(query)
    const { isAll, times } = this.#known.get(name) ?? UNKNOWN_LINE
    if (!isAll) this.#pending.set(name, { ...query, n: query.n * 2 ** times })
  }

  get hasMisses(): boolean {
    return this.#pending.size > 0
  }

  resetPass(): void {
    this.#pending.clear()
  }

  /**
   * `setNow` gives the transaction its time. Lanes that were found before the time was known were found at that time, or just
   * before it.
   */
  setNow(now: Millis): void {
    for (const [name, known] of this.#known) {
      const [flow, health, at] = JSON.parse(name) as [string, ReadyQuery['health'], Millis]
      if (at !== UNKNOWN_NOW) continue
      this.#known.delete(name)
      this.#known.set(readyQueryKey({ flow, health, now }), known)
    }
  }

  async load(find: (queries: readonly ReadyQuery[]) => Promise<readonly KnownExtent[]>): Promise<void> {
    const queries = [...this.#pending]
    this.#pending.clear()
    if (queries.length === 0) return
    const found = await find(queries.map(([, query]) => query))
    for (const [at, [name]] of queries.entries()) {
      const { last, isAll } = found[at] ?? UNKNOWN_LINE
      const before = this.#known.get(name) ?? UNKNOWN_LINE
      this.#known.set(name, { last: last ?? before.last, isAll, times: before.times + 1 })
    }
  }
}

/** The time of a transaction that has not read the server's clock yet. */
export const UNKNOWN_NOW: Millis = -1

function readyQueryKey({
  flow,
  health,
  now,
}: {
  readonly flow: string
  readonly health: number
  readonly now: Millis
}): string {
  return JSON.stringify([flow, health, now])
}

/** `compareByDeadline` orders lanes first ready, first served (L5). */
export function compareByDeadline(one: Pick<Lane, 'due' | 'ticket'>, other: Pick<Lane, 'due' | 'ticket'>): number {
  return one.due - other.due || one.ticket - other.ticket
}
