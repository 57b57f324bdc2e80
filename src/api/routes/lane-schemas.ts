// A lane in answers, and what names one.
import { z } from 'zod'
import type { LaneState } from '../../model/lane-states.ts'
import { attempt, moment } from '../schemas.ts'

const STATES = {
  idle: true,
  waiting: true,
  ready: true,
  running: true,
  lapsed: true,
  retrying: true,
  again: true,
  blocked: true,
  held: true,
} satisfies Record<LaneState, true>

export const laneState: z.ZodType<LaneState> = z.enum(Object.keys(STATES) as LaneState[])

export const laneId: z.ZodType<string> = z
  .string()
  .regex(/^[\w-]{20,40}$/, 'it is the id of a lane')
  .meta({ description: 'The id of a lane, as lists of lanes, events and runs have it.' })

export const lane: z.ZodType = z.strictObject({
  id: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  state: laneState,
  due: moment.optional().meta({ description: 'When something of it is due, past or future; not there: never.' }),
  waiting: z.int().meta({ description: 'Live events that wait, without those of the run.' }),
  bytes: z.int().meta({ description: 'Of the events that wait.' }),
  replays: z.int().meta({ description: 'Replayed events that wait.' }),
  queued: z.int().meta({ description: 'Dead letters that were retried by hand and wait for their turn.' }),
  blocks: z.int().meta({ description: 'Dead letters that the lane waits for.' }),
  hold: z.strictObject({ reason: z.string(), by: z.string(), until: moment.optional() }).optional(),
  run: z
    .strictObject({
      id: z.string(),
      state: z.enum(['running', 'retrying', 'again']),
      started: moment,
      until: moment.meta({ description: 'When its lease ends, or the next attempt is due.' }),
      events: z.int(),
      bytes: z.int(),
      tries: z.int(),
      lapses: z.int(),
      cancel: z.boolean().meta({ description: 'It was asked to give up.' }),
      attempts: z.array(attempt),
    })
    .optional(),
})
