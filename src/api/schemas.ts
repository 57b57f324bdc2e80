// Schemas that several routes share.
import { z } from 'zod'
import type { Duration } from '../model/duration.ts'
import type { LaneState } from '../model/lane-states.ts'
import type { ShownLaneState } from '../observe/status/lane-scan.ts'
import { isCursor } from '../store/contract/records.ts'

export interface NoFields {
  readonly [name: string]: never
}

export const NO_FIELDS: z.ZodObject<NoFields> = z.strictObject({})

/** The time format of the whole API. */
export const timestamp: z.ZodType<number> = z
  .int()
  .meta({ description: 'Milliseconds since 1970.', example: 1_767_225_600_000 })

const INVALID_TIME = 'a time is milliseconds since 1970, or as 2026-01-31T12:00:00Z'

/** The time format of query parameters, which are text, and of filters in JSON. */
export const timeInput: z.ZodType<number, string | number> = z
  .union([z.string().max(40), z.int().min(0, INVALID_TIME).max(999_999_999_999_999, INVALID_TIME)], INVALID_TIME)
  .transform((given, context) => {
    if (typeof given === 'number') return given
    const isIso = /^\d{4}-\d\d-\d\d/.test(given)
    const at = /^\d{1,15}$/.test(given) ? Number(given) : isIso ? Date.parse(given) : Number.NaN
    if (Number.isNaN(at)) context.addIssue(INVALID_TIME)
    return at
  })
  .meta({ description: 'Milliseconds since 1970, or ISO 8601.', example: '2026-01-31T12:00:00Z' })

interface PageQuery {
  readonly cursor: z.ZodType<string, string | undefined>
  readonly limit: z.ZodType<number, string | undefined>
}

const NO_CURSOR = 'it must be the `next` of the previous page'

/** The paging parameters of a list: the cursor and the page size. */
export const PAGE_QUERY: PageQuery = {
  cursor: z
    .string()
    .regex(/^\d{0,16}$/, NO_CURSOR)
    .refine(isCursor, NO_CURSOR)
    .default('')
    .meta({ description: 'The `next` of the previous page.' }),
  limit: z
    .string()
    .regex(/^(?:1000|[1-9]\d{0,2})$/, 'it must be a number from 1 to 1000')
    .default('100')
    .transform(Number)
    .meta({ description: 'The maximum number of items, 1 to 1,000.', example: '100' }),
}

export function pageOf<T extends z.ZodType>(
  item: T,
): z.ZodObject<{ items: z.ZodArray<T>; next: z.ZodOptional<z.ZodString> }> {
  const next = z.string().meta({ description: 'Pass it as `cursor` to get the next page. Missing on the last page.' })
  return z.strictObject({ items: z.array(item), next: next.optional() })
}

export const name: z.ZodType<string> = z.string().min(1).max(128)
/** Any text up to 16 KB. */
export const laneKey: z.ZodType<string> = z.string().max(16_384)
export const id: z.ZodType<string> = z.string().min(1).max(256)
export const tenant: z.ZodType<string> = z.string().max(1_024)

export interface AttemptResponse {
  readonly at: number
  readonly ms: number
  readonly error: string
}

export const attempt: z.ZodType<AttemptResponse> = z.strictObject({ at: timestamp, ms: z.number(), error: z.string() })

interface SteerResponse {
  readonly result: 'ok' | 'already' | 'missing' | 'running'
}

/** The outcome of an action on one object. */
export const steerResult: z.ZodType<SteerResponse> = z.strictObject({
  result: z.enum(['ok', 'already', 'missing', 'running']),
})

export const countResult: z.ZodType<{ readonly count: number }> = z.strictObject({ count: z.int().min(0) })

/** Why an operator acts. */
export const reason: z.ZodType<string> = z.string().min(1).max(1_000)

export const duration: z.ZodType<Duration> = z
  .string()
  .regex(/^\d{1,12}(?:\.\d{1,3})?(?:ms|s|m|h|d)$/, "it must be a duration such as '250ms', '10s' or '7d'")
  .meta({ description: 'A duration.', example: '10m' }) as unknown as z.ZodType<Duration>

const STATES: { readonly [State in LaneState]: State } = {
  idle: 'idle',
  waiting: 'waiting',
  ready: 'ready',
  running: 'running',
  lapsed: 'lapsed',
  retrying: 'retrying',
  snoozed: 'snoozed',
  blocked: 'blocked',
  held: 'held',
}

export const laneState: z.ZodType<LaneState> = z.enum(STATES)
/** A lane that waits for a limit counts as `limited`, not as `snoozed`. */
const SHOWN_STATES: { readonly [State in ShownLaneState]: State } = { ...STATES, limited: 'limited' }

const SHOWN_NAMES = Object.keys(SHOWN_STATES) as ShownLaneState[]

/** States of lanes in a query, separated by commas. */
export const shownLaneStates: z.ZodType<readonly ShownLaneState[], string> = z
  .string()
  .max(200)
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(SHOWN_NAMES)))
  .meta({ description: 'One or more states, separated by commas.', example: 'ready,running' })

/** One number for each state of a lane. */
export const laneCounts: z.ZodObject<{ readonly [State in ShownLaneState]: z.ZodInt }> = z.strictObject(
  Object.fromEntries(SHOWN_NAMES.map((state) => [state, z.int()])) as never,
)

interface FlowPause {
  readonly reason: string
  readonly by: string
  readonly since: number
}

export const flowPause: z.ZodType<FlowPause> = z.strictObject({ reason: z.string(), by: z.string(), since: timestamp })

export const laneId: z.ZodType<string> = z
  .string()
  .regex(/^[\w-]{20,40}$/, 'it must be the id of a lane')
  .meta({ description: 'The id of a lane, from a list of lanes, events or runs.' })

type Optional<T, In = unknown> = z.ZodExactOptional<z.ZodType<T, In>>

const WORD_MAX = 256

/** The fields of several filters. All given fields must match. */
export const TIME_RANGE: Readonly<Record<'from' | 'to', Optional<number, string | number>>> = {
  from: timeInput.exactOptional(),
  to: timeInput.exactOptional(),
}
export const LANE_FILTER: Readonly<Record<'flow' | 'key' | 'tenant', Optional<string>>> = {
  flow: name.exactOptional(),
  key: laneKey.exactOptional().meta({ description: 'Requires `flow`.' }),
  tenant: tenant.exactOptional(),
}
/** The subject of an event, as filters name it. */
export const subject: z.ZodType<string> = z.string().min(1).max(16_384)

export const EVENT_FILTER: Readonly<Record<'source' | 'type' | 'subject', Optional<string>>> & typeof LANE_FILTER = {
  source: z.string().max(WORD_MAX).exactOptional(),
  type: z.string().max(WORD_MAX).exactOptional(),
  subject: subject.exactOptional(),
  ...LANE_FILTER,
  flow: name.exactOptional().meta({ description: 'With `key`: the events that entered that lane.' }),
  key: laneKey.exactOptional(),
}
