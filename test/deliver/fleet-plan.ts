// A fleet of twenty endpoints, and what is published to them: who asked for what, how each behaves, and what is due to it.

export type Behaviour =
  | 'healthy'
  /** 500 for six POSTs in a row, now and then: its breaker opens. */
  | 'fails'
  /** 429, and when to come again. */
  | 'busy'
  /** Now and then it takes a batch and answers nothing. */
  | 'silent'
  /** Now and then it hangs up, before it has the batch or after. */
  | 'hangs-up'
  /** Now and then it accepts the first half of a batch. */
  | 'takes-part'
  /** It never accepts a batch with one of these events in it. */
  | 'chokes'

export interface Member {
  /** Its place in the fleet, and in the path of its URL. */
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
/** For one POST, in milliseconds. */
export const DEADLINE = 800
export const LEASE = 2_000
/** Longer than any of them fails in a row. */
export const PATIENT: readonly number[] = [50, 100, 100, 200, 200, 400, 400, 800]
/** Short of what opens the breaker: what chokes is given up, and what comes after it is tried at once. */
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

/** One event in so many, of those that the endpoint that chokes has asked for. */
export function isChokedOn(id: string): boolean {
  return Number(id.slice(1)) % CHOKES_EVERY === CHOKES_AT
}

/** Of so many events, those that it asked for, in their order. */
export function wantedBy({ eventFilter }: Member, events: number): readonly string[] {
  const wants = (type: string): boolean =>
    eventFilter.some((glob) => (glob.endsWith('*') ? type.startsWith(glob.slice(0, -1)) : glob === type))
  return Array.from({ length: events }, (_, n) => plannedOf(n)).flatMap(({ id, type }) => (wants(type) ? [id] : []))
}
