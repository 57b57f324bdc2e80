// `RangeView` holds the parts of an index that a transaction has loaded, and merges them with what the transaction changed.
import type { Range } from './texts.ts'

/** `Extent` is the loaded beginning of a range. */
interface Extent {
  readonly range: Range
  readonly members: readonly string[]
  readonly isAll: boolean
  /** The members as this pass has left them; undefined if it changed none. */
  merged: string[] | undefined
}

export interface MissingRange extends Range {
  readonly n: number
}

export class RangeView {
  readonly #extents = new Map<string, Extent>()
  readonly #missing = new Map<string, MissingRange>()
  /** The members that this pass has added, for ranges that are loaded later. */
  #changes = 0

  /** `find` returns the first `n` members of the range. If they are not all known, it records what is missing. */
  find(range: Range, n: number): readonly string[] {
    const id = toId(range)
    const extent = this.#extents.get(id)
    if (extent === undefined) {
      // Rows that the transaction changed may be among the first.
      this.#request(id, range, n + Math.min(this.#changes, n))
      return []
    }
    const found = extent.merged ?? extent.members
    if (found.length < n && !extent.isAll) this.#request(id, range, 2 * Math.max(n, extent.members.length))
    return found.length > n ? found.slice(0, n) : found
  }

  #request(id: string, range: Range, n: number): void {
    this.#missing.set(id, { ...range, n: Math.max(n, this.#missing.get(id)?.n ?? 0) })
  }

  /** `change` replaces the members of a row. */
  change(before: readonly string[], after: readonly string[]): void {
    this.#changes++
    for (const extent of this.#extents.values()) {
      for (const member of before) if (!after.includes(member)) removeMember(extent, member)
      for (const member of after) if (!before.includes(member)) addMember(extent, member)
    }
  }

  get hasMisses(): boolean {
    return this.#missing.size > 0
  }

  takeMisses(): readonly MissingRange[] {
    const all = [...this.#missing.values()]
    this.#missing.clear()
    return all
  }

  add(range: MissingRange, members: readonly string[]): void {
    const sorted = members.toSorted(toComparison(range))
    this.#extents.set(toId(range), { range, members: sorted, isAll: members.length < range.n, merged: undefined })
  }

  /** `known` returns the loaded members of the range, and how many were asked for. */
  known(range: Range): { readonly members: readonly string[]; readonly n: number } | undefined {
    const extent = this.#extents.get(toId(range))
    return extent && { members: extent.members, n: extent.isAll ? Infinity : extent.members.length }
  }

  resetPass(): void {
    this.#missing.clear()
    if (this.#changes === 0) return
    this.#changes = 0
    for (const extent of this.#extents.values()) extent.merged = undefined
  }

  forget(): void {
    this.#extents.clear()
  }
}

function isKnown({ range: { from, to, isReversed = false }, members, isAll }: Extent, member: string): boolean {
  if (member < from || member >= to) return false
  const last = members.at(-1)
  return isAll || (last !== undefined && (isReversed ? member >= last : member <= last))
}

function removeMember(extent: Extent, member: string): void {
  if (!isKnown(extent, member)) return
  extent.merged ??= [...extent.members]
  const at = findIndex(extent.merged, member, extent.range)
  if (extent.merged[at] === member) extent.merged.splice(at, 1)
}

function addMember(extent: Extent, member: string): void {
  if (!isKnown(extent, member)) return
  extent.merged ??= [...extent.members]
  const at = findIndex(extent.merged, member, extent.range)
  if (extent.merged[at] !== member) extent.merged.splice(at, 0, member)
}

/** Returns the index of the member, or the index at which it would be inserted. */
function findIndex(members: readonly string[], member: string, range: Range): number {
  const compare = toComparison(range)
  let from = 0
  let to = members.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (compare(members[middle] ?? '', member) < 0) from = middle + 1
    else to = middle
  }
  return from
}

function toComparison({ isReversed = false }: Range): (one: string, other: string) => number {
  const direction = isReversed ? -1 : 1
  return (one, other) => (one === other ? 0 : one < other ? -direction : direction)
}

function toId({ from, to, isReversed = false }: Range): string {
  return `${isReversed ? '-' : '+'}${from}\0${to}`
}
