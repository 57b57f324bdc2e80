// Whether a planted fault shows depends on when processes die, and on a slow machine little has happened by then. So it is tried until
// it is seen; a checker that has not seen it in so many times does not look for it.
const TIMES = 5

export async function mustSee<T>(attempt: () => Promise<T>, isSeen: (found: T) => boolean): Promise<void> {
  for (let left = TIMES; ; left--) {
    const found = await attempt()
    if (isSeen(found)) return
    if (left === 1)
      throw new Error(`It was not seen in ${TIMES} times; the last: ${JSON.stringify(found).slice(0, 2_000)}`)
  }
}
