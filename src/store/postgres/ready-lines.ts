// How far the lines of ready lanes are known: as many as were asked for are locked, and what stands behind is not known.
import type { Millis } from '../../clock.ts'
import type { Lane } from '../../model/lane.ts'
import type { ReadyQuery } from '../rules/tables.ts'

export interface Found {
  /** Where the last one stands that was found; undefined before anything was. */
  readonly last: Pick<Lane, 'due' | 'ticket'> | undefined
  /** Nothing that is ready stands behind it, but for what others hold. */
  readonly isAll: boolean
}

const NOTHING: Found = { last: undefined, isAll: false }

export class ReadyLines {
  readonly #known = new Map<string, Found>()
  readonly #lacking = new Map<string, ReadyQuery>()

  /** Of lanes in their order, those that surely have nobody unknown before them. */
  upTo(query: ReadyQuery, lanes: readonly Lane[]): readonly Lane[] {
    const { last, isAll } = this.#known.get(nameOf(query)) ?? NOTHING
    if (isAll) return lanes
    return last === undefined ? [] : lanes.filter((lane) => byTurn(lane, last) <= 0)
  }

  /** These are not enough. */
  ask(query: ReadyQuery): void {
    const name = nameOf(query)
    if (this.#known.get(name)?.isAll !== true) this.#lacking.set(name, query)
  }

  /** How many are being asked for. */
  asked(flow: string, line: number): number {
    let most = 0
    for (const query of this.#lacking.values())
      if (query.flow === flow && query.line === line) most = Math.max(most, query.n)
    return most
  }

  isAsked(flow: string): boolean {
    for (const query of this.#lacking.values()) if (query.flow === flow) return true
    return false
  }

  /** Of any line: whether it was looked for those that are ready. */
  get areKnown(): boolean {
    return this.#known.size > 0
  }

  get isLacking(): boolean {
    return this.#lacking.size > 0
  }

  again(): void {
    this.#lacking.clear()
  }

  /** What was found before the moment of the transaction was known was found at that moment, or just before it. */
  happened(now: Millis): void {
    for (const [name, known] of this.#known) {
      const [flow, line, at] = JSON.parse(name) as [string, ReadyQuery['line'], Millis]
      if (at !== SOON) continue
      this.#known.delete(name)
      this.#known.set(nameOf({ flow, line, now }), known)
    }
  }

  async load(find: (queries: readonly ReadyQuery[]) => Promise<readonly Found[]>): Promise<void> {
    const queries = [...this.#lacking]
    this.#lacking.clear()
    if (queries.length === 0) return
    const found = await find(queries.map(([, query]) => query))
    for (const [at, [name]] of queries.entries()) {
      const { last, isAll } = found[at] ?? NOTHING
      this.#known.set(name, { last: last ?? this.#known.get(name)?.last, isAll })
    }
  }
}

/** The moment of a transaction that has not got one yet. */
export const SOON: Millis = -1

function nameOf({ flow, line, now }: { readonly flow: string; readonly line: number; readonly now: Millis }): string {
  return JSON.stringify([flow, line, now])
}

/** First ready, first served (L5). */
export function byTurn(one: Pick<Lane, 'due' | 'ticket'>, other: Pick<Lane, 'due' | 'ticket'>): number {
  return one.due - other.due || one.ticket - other.ticket
}
