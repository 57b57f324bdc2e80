// Pieces of what routes take and answer, said once.
import { z } from 'zod'

interface NoFields {
  readonly [name: string]: never
}

export const NOTHING: z.ZodObject<NoFields> = z.strictObject({})

/** As all times of the API. */
export const moment: z.ZodType<number> = z
  .int()
  .meta({ description: 'Milliseconds since 1970.', example: 1_767_225_600_000 })

const NO_TIME = 'a time is milliseconds since 1970, or as 2026-01-31T12:00:00Z'

/** In a query, where all is text, or a filter in JSON. */
export const asked: z.ZodType<number, string | number> = z
  .union([z.string().max(40), z.int().min(0, NO_TIME).max(999_999_999_999_999, NO_TIME)], NO_TIME)
  .transform((given, context) => {
    if (typeof given === 'number') return given
    const isIso = /^\d{4}-\d\d-\d\d/.test(given)
    const at = /^\d{1,15}$/.test(given) ? Number(given) : isIso ? Date.parse(given) : Number.NaN
    if (Number.isNaN(at)) context.addIssue(NO_TIME)
    return at
  })
  .meta({ description: 'Milliseconds since 1970, or ISO 8601.', example: '2026-01-31T12:00:00Z' })

interface PageQuery {
  readonly cursor: z.ZodType<string, string | undefined>
  readonly limit: z.ZodType<number, string | undefined>
}

/** Of a list: where to go on, and how many at most. */
export const PAGE: PageQuery = {
  cursor: z
    .string()
    .regex(/^\d{0,20}$/, 'it is the `next` of the page before')
    .default('')
    .meta({ description: 'The `next` of the page before.' }),
  limit: z
    .string()
    .regex(/^(?:1000|[1-9]\d{0,2})$/, 'it is a number from 1 to 1000')
    .default('100')
    .transform(Number)
    .meta({ description: 'How many at most, 1 to 1,000.', example: '100' }),
}

export function pageOf<T extends z.ZodType>(
  item: T,
): z.ZodObject<{ items: z.ZodArray<T>; next: z.ZodOptional<z.ZodString> }> {
  const next = z.string().meta({ description: 'To be given as `cursor` for the page after; not there at the end.' })
  return z.strictObject({ items: z.array(item), next: next.optional() })
}

export const name: z.ZodType<string> = z.string().min(1).max(128)
/** Any text up to 16 KB. */
export const laneKey: z.ZodType<string> = z.string().max(16_384)
export const id: z.ZodType<string> = z.string().min(1).max(256)
export const tenant: z.ZodType<string> = z.string().max(1_024)

export interface AttemptAnswer {
  readonly at: number
  readonly ms: number
  readonly error: string
}

export const attempt: z.ZodType<AttemptAnswer> = z.strictObject({ at: moment, ms: z.number(), error: z.string() })

interface SteeredAnswer {
  readonly result: 'ok' | 'already' | 'missing' | 'running'
}

/** What became of the one thing that was steered. */
export const steered: z.ZodType<SteeredAnswer> = z.strictObject({
  result: z.enum(['ok', 'already', 'missing', 'running']),
})

export const counted: z.ZodType<{ readonly count: number }> = z.strictObject({ count: z.int().min(0) })
