// The plan of the fleet: twenty endpoints with their filters and behaviours, and the events that each of them must
// get.

export type Behaviour =
  | 'healthy'
  /** Responds with 500 to six POSTs in a row, now and then, so that its breaker opens. */
  | 'fails'
  /** Responds with 429 and Retry-After. */
  | 'busy'
  /** Accepts a batch now and then without a response. */
  | 'silent'
  /** Closes the connection now and then, before or after it has the batch. */
  | 'hangs-up'
  /** Accepts only the first half of a batch now and then. */
  | 'takes-part'
  /** Never accepts a batch with certain events. */
  | 'chokes'

export interface Member {
  /** The index of the endpoint in the fleet and in its URL. */
  readonly at: number
  readonly behaviour: Behaviour
  readonly eventFilter: readonly string[]
}

const VERSIONS = ['version.*']
const BEHAVIOURS: readonly (readonly [Behaviour, readonly string[]])[] = [
  ...Array.from({ length: 6 }, () => ['healthy', VERSIONS] as const),
  ...Array.from({ length: 3 }, () => ['healthy', ['version.a']] as const),
  ...Array.from({ length: 3 }, () => ['healthy', ['version.b', 'version.c']] as const),
  ['fails', VERSIONS],
  ['fails', ['version.a']],
  ['busy', VERSIONS],
  ['busy', ['version.b']],
  ['silent', VERSIONS],
  ['hangs-up', VERSIONS],
  ['takes-part', VERSIONS],
  ['chokes', ['audit.*']],
]

export const FLEET: readonly Member[] = BEHAVIOURS.map(([behaviour, eventFilter], at) => ({
  at,
  behaviour,
  eventFilter,
}))

export const SECRET: string = `whsec_${Buffer.alloc(32, 'the fleet').toString('base64')}`
export const MAX_EVENTS = 50
/** The time for one POST, in milliseconds. */
export const DEADLINE = 800
export const LEASE = 2_000
/** More retries than any endpoint fails in a row. */
export const PATIENT: readonly number[] = [50, 100, 100, 200, 200, 400, 400, 800]
/** Too few attempts to open the breaker, so that the events after a dead batch are sent at once. */
export const IMPATIENT: readonly number[] = [50, 50]

const TYPES = ['version.a', 'version.b', 'version.c', 'audit.a'] as const
const CHOKES_EVERY = 800
const CHOKES_AT = 3

export interface Planned {
  readonly id: string
  readonly type: (typeof TYPES)[number]
}

export function plannedOf(n: number): Planned {
  return { id: `e${String(n).padStart(8, '0')}`, type: TYPES[n % TYPES.length] ?? 'audit.a' }
}

/** Selects a fixed share of the events that the choking endpoint asked for. */
export function isChokedOn(id: string): boolean {
  return Number(id.slice(1)) % CHOKES_EVERY === CHOKES_AT
}

/** Returns the events that the endpoint asked for among the first `events`, in order. */
export function wantedBy({ eventFilter }: Member, events: number): readonly string[] {
  const wants = (type: string): boolean =>
    eventFilter.some((glob) => (glob.endsWith('*') ? type.startsWith(glob.slice(0, -1)) : glob === type))
  return Array.from({ length: events }, (_, n) => plannedOf(n)).flatMap(({ id, type }) => (wants(type) ? [id] : []))
}
