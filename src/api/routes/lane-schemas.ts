// The schema of a lane in responses, and the parameters that name a lane.
import { z } from 'zod'
import type { LaneState } from '../../model/lane-states.ts'
import { attempt, timestamp } from '../schemas.ts'

const STATES = {
  idle: true,
  waiting: true,
  ready: true,
  running: true,
  lapsed: true,
  retrying: true,
  snoozed: true,
  blocked: true,
  held: true,
} satisfies Record<LaneState, true>

export const laneState: z.ZodType<LaneState> = z.enum(Object.keys(STATES) as LaneState[])

export const laneId: z.ZodType<string> = z
  .string()
  .regex(/^[\w-]{20,40}$/, 'it must be the id of a lane')
  .meta({ description: 'The id of a lane, from a list of lanes, events or runs.' })

export const lane: z.ZodType = z.strictObject({
  id: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  state: laneState,
  due: timestamp
    .optional()
    .meta({ description: 'When the lane is due, past or future. Missing if it has no deadline.' }),
  waiting: z.int().meta({ description: 'Waiting live events, without those of the run.' }),
  bytes: z.int().meta({ description: 'The size of the waiting events.' }),
  replays: z.int().meta({ description: 'Waiting replayed events.' }),
  queued: z.int().meta({ description: 'Dead letters that an operator retried and that wait to run.' }),
  blocks: z.int().meta({ description: 'Dead letters that block the lane.' }),
  hold: z.strictObject({ reason: z.string(), by: z.string(), until: timestamp.optional() }).optional(),
  run: z
    .strictObject({
      id: z.string(),
      state: z.enum(['running', 'retrying', 'snoozed']),
      started: timestamp,
      until: timestamp.meta({ description: 'When its lease ends, or the next attempt is due.' }),
      events: z.int(),
      bytes: z.int(),
      tries: z.int(),
      lapses: z.int(),
      cancel: z.boolean().meta({ description: 'Whether the run was asked to cancel.' }),
      attempts: z.array(attempt),
    })
    .optional(),
})
