// Whether a fleet got what it asked for: pure, from what a witness wrote down. Knows nothing of how it was delivered.

/** One POST, as the endpoint saw it. */
export interface Witnessed {
  readonly endpoint: number
  /** The id of the batch. */
  readonly batch: string
  readonly events: readonly string[]
  /** When it was read whole, and when it was answered or given up. */
  readonly at: number
  readonly until: number
  /** `taken` was answered so; `cut-off` it has as well, but nobody was told. Those that it has are in `has`. */
  readonly end: 'taken' | 'cut-off' | 'refused'
  readonly has: readonly string[]
  readonly isSigned: boolean
  /** Which worker sent it. */
  readonly by: string
}

export interface Letter {
  readonly events: readonly string[]
  readonly reason: string
}

export interface Given {
  readonly endpoint: number
  /** What it asked for, in the order in which it was published. */
  readonly wanted: readonly string[]
  /** Of this endpoint alone, in the order in which they came. */
  readonly posts: readonly Witnessed[]
  readonly letters: readonly Letter[]
  /** The workers that were killed. */
  readonly killed: readonly string[]
  readonly isHealthy: boolean
  readonly maxEvents: number
  /** What a dead letter of it must say. */
  readonly saying: RegExp
}

/** What is wrong, in words; none if all is well. */
export function complaintsOf(given: Given): readonly string[] {
  const found = [
    ...missing(given),
    ...unwanted(given),
    ...disordered(given),
    ...repeated(given),
    ...malformed(given),
    ...overlapping(given),
    ...badLetters(given),
  ]
  return found.map((what) => `endpoint ${given.endpoint}: ${what}`)
}

function missing({ wanted, posts, letters }: Given): readonly string[] {
  const known = new Set([...posts.flatMap(({ has }) => has), ...letters.flatMap(({ events }) => events)])
  return wanted.filter((id) => !known.has(id)).map((id) => `${id} is missing`)
}

function unwanted({ wanted, posts }: Given): readonly string[] {
  const known = new Set(wanted)
  return posts.flatMap(({ events }) => events.filter((id) => !known.has(id)).map((id) => `${id} was never asked for`))
}

/** By when it first had each. What was given up is out of the line. */
function disordered({ wanted, posts }: Given): readonly string[] {
  const places = new Map(wanted.map((id, place) => [id, place]))
  const firsts = [...new Set(posts.flatMap(({ has }) => has))]
  return firsts.flatMap((id, at) => {
    const before = firsts[at - 1]
    const isBehind = before === undefined || (places.get(id) ?? 0) > (places.get(before) ?? 0)
    return isBehind ? [] : [`${id} came after ${before}`]
  })
}

/**
 * What it had already may come again only if nobody could know that, and under the same id: its answer was cut off, or it was
 * the last that its worker sent there before that was killed. Whatever that one sent after an answer, it had heard the answer.
 */
function repeated({ posts, killed }: Given): readonly string[] {
  const lastBy = new Map(posts.map((post) => [post.by, post]))
  const had = new Map<string, Witnessed>()
  return posts.flatMap((post) =>
    post.has.flatMap((id) => {
      const before = had.get(id)
      had.set(id, post)
      if (before === undefined) return []
      const isUnheard = killed.includes(before.by) && lastBy.get(before.by) === before
      if (before.end !== 'cut-off' && !isUnheard) return [`${id} came twice, though its first answer was heard`]
      return before.batch === post.batch ? [] : [`${id} came twice, as ${before.batch} and as ${post.batch}`]
    }),
  )
}

function malformed({ posts, maxEvents }: Given): readonly string[] {
  const batches = new Map<string, string>()
  return posts.flatMap(({ batch, events, isSigned }) => {
    const [content, known] = [events.join(), batches.get(batch)]
    batches.set(batch, content)
    return [
      ...(isSigned ? [] : [`${batch} is not signed`]),
      ...(events.length >= 1 && events.length <= maxEvents ? [] : [`${batch} has ${events.length} events`]),
      ...(content === events.toSorted().join() ? [] : [`${batch} is not in order`]),
      ...(known === undefined || known === content ? [] : [`${batch} has other events than before`]),
    ]
  })
}

/** One at a time. One that was given up by the other side ends when that was noticed. */
function overlapping({ posts }: Given): readonly string[] {
  return posts.flatMap((post, at) => {
    const before = posts[at - 1]
    return before === undefined || post.at >= before.until ? [] : [`${post.batch} came while ${before.batch} was there`]
  })
}

function badLetters({ letters, isHealthy, posts, saying }: Given): readonly string[] {
  const taken = new Set(posts.filter(({ end }) => end === 'taken').flatMap(({ has }) => has))
  return letters.flatMap(({ events, reason }) => [
    ...(isHealthy ? [`a healthy one has a dead letter: ${reason}`] : []),
    ...(saying.test(reason) ? [] : [`a dead letter does not say why: ${JSON.stringify(reason)}`]),
    ...events.filter((id) => taken.has(id)).map((id) => `${id} is dead though it was taken`),
  ])
}

/** The nearest value from above: of few values the p99 is the largest. */
export function p99(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = Math.floor(sorted.length / 2)
  const [low, high] = [sorted[Math.max(0, sorted.length % 2 === 0 ? middle - 1 : middle)], sorted[middle]]
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2
}
