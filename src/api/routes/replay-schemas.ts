// A replay in answers, and what one is asked for.
import { z } from 'zod'
import type { Replay } from '../../operate/replays.ts'
import { moment, name } from '../schemas.ts'
import { laneId } from './lane-schemas.ts'

/** The flows that get the events. */
export const into: z.ZodExactOptional<z.ZodArray<typeof name>> = z
  .array(name)
  .min(1)
  .max(100)
  .exactOptional()
  .meta({ description: 'The flows that get the events, if they want them; all unless said.' })

export const replay: z.ZodType = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'done', 'cancelled', 'stuck']),
  filter: z.strictObject({
    source: z.string().optional(),
    type: z.string().optional(),
    tenant: z.string().optional(),
    lane: laneId.optional(),
    from: moment.optional(),
    to: moment.optional(),
  }),
  event: z.string().optional().meta({ description: 'One alone.' }),
  into: z.array(z.string()),
  rate: z.number(),
  per: z.number().meta({ description: 'Milliseconds.' }),
  started: moment,
  ended: moment.optional(),
  found: z.int().meta({ description: 'Events by the filter, counted before the first was placed.' }),
  looked: z.int(),
  placed: z.int(),
  skipped: z.int().meta({ description: 'No flow wanted them, or found a key in them.' }),
  gone: z.int(),
  failed: z.int(),
  error: z.string().meta({ description: 'Of the last that failed.' }),
})

/** Without what the engine adds to every filter. */
export function replayAnswer(asked: Replay): object {
  const { withoutSource: _own, ...filter } = asked.filter
  return { ...asked, filter }
}
