// Finds the name that was probably meant, for the question "Did you mean …?" after a misspelled option or command.

/** `suggestName` returns the question, preceded by a space, or an empty text if no name is close. */
export function suggestName(wrong: string, names: readonly string[], prefix = ''): string {
  const closest = findClosest(wrong, names)
  return closest === undefined ? '' : ` Did you mean ${prefix}${closest}?`
}

/** A long text is no misspelled name, and comparing it would take long. */
const MAX_LENGTH = 60

function findClosest(wrong: string, names: readonly string[]): string | undefined {
  if (wrong.length > MAX_LENGTH) return undefined
  // One mistake in a short name, two in a longer one.
  const most = wrong.length <= 5 ? 1 : 2
  const ranked = names
    .map((name) => ({ name, distance: editDistance(wrong.toLowerCase(), name.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .toSorted((one, other) => one.distance - other.distance)
  return ranked[0]?.name
}

/** Counts the insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let at = 1; at <= to.length; at++) {
      const isSame = from[row - 1] === to[at - 1]
      const replaced = (last[at - 1] ?? 0) + (isSame ? 0 : 1)
      const isSwap = row > 1 && at > 1 && from[row - 1] === to[at - 2] && from[row - 2] === to[at - 1]
      const swapped = isSwap ? (beforeLast[at - 2] ?? 0) + 1 : Infinity
      current.push(Math.min(replaced, swapped, (last[at] ?? 0) + 1, (current[at - 1] ?? 0) + 1))
    }
    beforeLast = last
    last = current
  }
  return last[to.length] ?? 0
}
