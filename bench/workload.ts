// The work of all sides, drawn once from a seed before the clock runs, so that every side does the same.

const BATCH_SIZE = 100
const PAYLOAD_BYTES = 500
export const CONCURRENCY = 200
const CALLERS = 2
const LANES = 1000
const DEBOUNCE_MILLIS = 10_000
// Enough batches that a caller does not repeat a batch within a few hundred milliseconds.
const BATCHES_PER_CALLER = 512

export interface Payload {
  readonly event: number
  readonly body: string
}

export interface AppendWork {
  readonly seconds: number
  /** How far in the future an appended event is due: nothing becomes due during a round. */
  readonly debounceMillis: number
  /** The keys of each caller's batches, used in a cycle. Keys within a batch are distinct and sorted. */
  readonly callers: readonly (readonly (readonly string[])[])[]
}

export interface DrainWork {
  readonly count: number
  readonly concurrency: number
}

/** Every payload differs, and is 500 bytes as JSON. */
export function payload(event: number): Payload {
  const head = `{"event":${event},"body":""}`.length
  return { event, body: FILLER.slice(0, PAYLOAD_BYTES - head) }
}

const FILLER = 'order 4711 was changed by the customer; '.repeat(PAYLOAD_BYTES / 40 + 1)

/** Whether the callers may use the same lanes, or each has its share of them. */
export type LaneSharing = 'shared' | 'apart'

export function appendWork(seconds: number, seed: number, sharing: LaneSharing): AppendWork {
  const random = randomFrom(seed)
  const lanes = sharing === 'shared' ? LANES : LANES / CALLERS
  const callers = Array.from({ length: CALLERS }, (_, caller) => {
    const first = sharing === 'shared' ? 0 : caller * lanes
    return Array.from({ length: BATCHES_PER_CALLER }, () => distinctKeys(random, first, lanes))
  })
  return { seconds, debounceMillis: DEBOUNCE_MILLIS, callers }
}

export function drainWork(count: number): DrainWork {
  return { count, concurrency: CONCURRENCY }
}

/**
 * Keys are distinct, because Graphile Worker refuses a batch with the same job_key twice. They are sorted, because two callers
 * that lock the same rows in different orders cause one deadlock after another in PostgreSQL (README).
 */
function distinctKeys(random: () => number, first: number, lanes: number): readonly string[] {
  const drawn = new Set<number>()
  while (drawn.size < BATCH_SIZE) drawn.add(first + Math.floor(random() * lanes))
  return [...drawn].map((lane) => `lane-${String(lane).padStart(4, '0')}`).toSorted()
}

/** mulberry32: small, and the same on every machine. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
