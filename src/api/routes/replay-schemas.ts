// The schemas of a replay: the request and the response.
import { z } from 'zod'
import type { Replay } from '../../admin/replays.ts'
import { timestamp, name } from '../schemas.ts'
import { laneId } from './lane-schemas.ts'

/** The flows that get the events. */
export const into: z.ZodExactOptional<z.ZodArray<typeof name>> = z
  .array(name)
  .min(1)
  .max(100)
  .exactOptional()
  .meta({ description: 'The flows that get the events, if they want them. Default: all flows.' })

export const replay: z.ZodType = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'done', 'cancelled', 'stuck']),
  filter: z.strictObject({
    source: z.string().optional(),
    type: z.string().optional(),
    tenant: z.string().optional(),
    lane: laneId.optional(),
    from: timestamp.optional(),
    to: timestamp.optional(),
  }),
  event: z.string().optional().meta({ description: 'Only this event.' }),
  into: z.array(z.string()),
  rate: z.number(),
  per: z.number().meta({ description: 'Milliseconds.' }),
  started: timestamp,
  ended: timestamp.optional(),
  found: z.int().meta({ description: 'Events that match the filter, counted before the first was placed.' }),
  looked: z.int(),
  placed: z.int(),
  skipped: z.int().meta({ description: 'Events that no flow wanted or found a key in.' }),
  gone: z.int(),
  failed: z.int(),
  error: z.string().meta({ description: 'The error of the last failure.' }),
})

/** `toReplayResponse` omits what the engine adds to every filter. */
export function toReplayResponse(asked: Replay): object {
  const { withoutSource: _own, ...filter } = asked.filter
  return { ...asked, filter }
}
