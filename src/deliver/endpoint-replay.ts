// `parseEndpointReplay` checks what to replay to one endpoint: dead letters of it, or stored events.
import type { Millis } from '../clock.ts'
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'

/** `EndpointReplay` names dead letters, or, with `from`, `to` or `type` and without `dead`, stored events. */
export interface EndpointReplay {
  readonly deadLetter?: string
  /** Dead letters only. Default: true, unless `from`, `to` or `type` is given. */
  readonly dead?: boolean
  /** What arrived, or died, at this time or later. */
  readonly from?: 'beginning' | Date | Millis
  /** What arrived, or died, before this time. */
  readonly to?: Date | Millis
  /** Events of this type, or dead letters with one. */
  readonly type?: string
  /** At most `rate` events per `per`. Only for stored events. Default 100 per second. */
  readonly rate?: number
  readonly per?: Duration
}

export interface ReplayRange {
  readonly from?: Millis
  readonly to?: Millis
  readonly type?: string
}

export type ParsedEndpointReplay =
  | { readonly kind: 'dead-letter'; readonly deadLetter: string }
  | { readonly kind: 'dead'; readonly range: ReplayRange }
  | { readonly kind: 'events'; readonly range: ReplayRange; readonly pace: Pick<EndpointReplay, 'rate' | 'per'> }

/** `EndpointReplayResult` has the number of dead letters that will be retried, or of events that the replay will read. */
export interface EndpointReplayResult {
  readonly count: number
  /** The id of the replay, which `app.admin.replays` shows, cancels and resumes. Only for stored events. */
  readonly replay?: string
}

const WHERE = 'endpoints.replay: '
const OPTIONS: readonly (keyof EndpointReplay)[] = ['deadLetter', 'dead', 'from', 'to', 'type', 'rate', 'per']

export function parseEndpointReplay(which: EndpointReplay): ParsedEndpointReplay {
  assertKnownOptions(which, OPTIONS, WHERE)
  const { deadLetter, from, to, type, rate, per } = which
  if (deadLetter !== undefined) {
    if (Object.values(which).filter((value) => value !== undefined).length > 1)
      throw invalidOption(`${WHERE}deadLetter must be the only option. Remove the others.`)
    return { kind: 'dead-letter', deadLetter }
  }
  const times = { from: parseTime(from === 'beginning' ? 0 : from, 'from'), to: parseTime(to, 'to') }
  const range = {
    ...(times.from !== undefined && { from: times.from }),
    ...(times.to !== undefined && { to: times.to }),
    ...(type !== undefined && { type }),
  }
  const { dead = Object.keys(range).length === 0 } = which
  if (!dead && Object.keys(range).length === 0)
    throw invalidOption(`${WHERE}from, to or type must be given. from: 'beginning' selects all stored events.`)
  const pace = { ...(rate !== undefined && { rate }), ...(per !== undefined && { per }) }
  if (dead && Object.keys(pace).length > 0)
    throw invalidOption(`${WHERE}rate and per must be used with stored events only. Remove them, or dead.`)
  return dead ? { kind: 'dead', range } : { kind: 'events', range, pace }
}

function parseTime(time: Date | Millis | undefined, name: string): Millis | undefined {
  const at: unknown = time instanceof Date ? time.getTime() : time
  if (at === undefined || (typeof at === 'number' && Number.isFinite(at))) return at
  throw invalidOption(`${WHERE}${name} must be a Date or milliseconds since 1970.`)
}
