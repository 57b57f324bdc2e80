// Checks from the log of the witness whether each endpoint of the fleet got what it asked for. Pure; it knows nothing
// about the delivery code.

/** One POST as the endpoint saw it. */
export interface Witnessed {
  readonly endpoint: number
  /** The id of the batch. */
  readonly batch: string
  readonly events: readonly string[]
  /** When the request was read completely, and when it was answered or given up. */
  readonly at: number
  readonly until: number
  /**
   * `taken`: the endpoint accepted and said so. `cut-off`: it accepted, but its response was lost. `has` lists the
   * events it has.
   */
  readonly end: 'taken' | 'cut-off' | 'refused'
  readonly has: readonly string[]
  readonly isSigned: boolean
  /** When the connection closed, if no other POST came on it: its sender may have given up just before the response. */
  readonly left?: number
  /** The worker that sent the POST. */
  readonly by: string
}

export interface Letter {
  readonly events: readonly string[]
  readonly reason: string
}

export interface Given {
  readonly endpoint: number
  /** The events that the endpoint asked for, in the order of their publication. */
  readonly wanted: readonly string[]
  /** The POSTs to this endpoint, in the order of their arrival. */
  readonly posts: readonly Witnessed[]
  readonly deadLetters: readonly Letter[]
  /** The killed workers. */
  readonly killed: readonly string[]
  readonly isHealthy: boolean
  readonly maxEvents: number
  /** The pattern that the reason of each dead letter must match. */
  readonly saying: RegExp
}

/** `complaintsOf` returns a sentence per fault, or an empty list. */
export function complaintsOf(given: Given): readonly string[] {
  const found = [
    ...missing(given),
    ...unwanted(given),
    ...disordered(given),
    ...repeated(given),
    ...malformed(given),
    ...overlapping(given),
    ...badDeadLetters(given),
  ]
  return found.map((what) => `endpoint ${given.endpoint}: ${what}`)
}

function missing({ wanted, posts, deadLetters }: Given): readonly string[] {
  const known = new Set([...posts.flatMap(({ has }) => has), ...deadLetters.flatMap(({ events }) => events)])
  return wanted.filter((id) => !known.has(id)).map((id) => `${id} is missing`)
}

function unwanted({ wanted, posts }: Given): readonly string[] {
  const known = new Set(wanted)
  return posts.flatMap(({ events }) => events.filter((id) => !known.has(id)).map((id) => `${id} was never asked for`))
}

/** Compares the first arrival of each event. Dead events do not count. */
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
 * An event may come twice only under the same id, and only if its sender could not know better: the response was cut
 * off, the sender gave up and left, or the sender was killed after this POST. A worker that sent another POST later had
 * received the response.
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
      const hasLeft = before.left !== undefined && before.left <= post.at
      if (before.end !== 'cut-off' && !isUnheard && !hasLeft)
        return [`${id} came twice, though its first answer was heard`]
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

/** Finds POSTs that overlap. A POST that the sender gave up ends when the endpoint noticed it. */
function overlapping({ posts }: Given): readonly string[] {
  return posts.flatMap((post, at) => {
    const before = posts[at - 1]
    return before === undefined || post.at >= before.until ? [] : [`${post.batch} came while ${before.batch} was there`]
  })
}

function badDeadLetters({ deadLetters, isHealthy, posts, saying }: Given): readonly string[] {
  const taken = new Set(posts.filter(({ end }) => end === 'taken').flatMap(({ has }) => has))
  return deadLetters.flatMap(({ events, reason }) => [
    ...(isHealthy ? [`a healthy one has a dead letter: ${reason}`] : []),
    ...(saying.test(reason) ? [] : [`a dead letter does not say why: ${JSON.stringify(reason)}`]),
    ...events.filter((id) => taken.has(id)).map((id) => `${id} is dead though it was taken`),
  ])
}

/** Rounds up to the next value; for few values the p99 is the largest one. */
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
