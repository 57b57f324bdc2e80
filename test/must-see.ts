// Whether a planted fault shows depends on when processes die, and on a slow machine little has happened by then. So it is tried until
// there was something to plant it in; and then it is seen.
const TIMES = 5

/** An attempt says whether the fault was `planted`, unless it always is. `most`: how often it may then be missed, where that takes luck. */
export async function mustSee<T extends object>(
  attempt: () => Promise<T>,
  isSeen: (found: T) => boolean,
  most = 0,
): Promise<void> {
  let missed = 0
  for (let times = 1; ; times++) {
    const found = await attempt()
    const isThere = !('planted' in found) || found.planted === true
    if (isThere && isSeen(found)) return
    if (isThere && ++missed > most) throw new Error(`It was there and not seen: ${textOf(found)}`)
    if (times >= TIMES + most) throw new Error(`There was nothing to plant it in: ${textOf(found)}`)
  }
}

function textOf(found: unknown): string {
  return JSON.stringify(found).slice(0, 2_000)
}
