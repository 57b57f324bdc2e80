// A run in answers.
import { z } from 'zod'
import type { RunRecord } from '../../store/contract/index.ts'
import { attempt, moment } from '../schemas.ts'
import { laneId } from './lane-schemas.ts'

export const runKind: z.ZodType<RunRecord['kind']> = z.enum([
  'done',
  'partial',
  'dead',
  'dropped',
  'cancelled',
  'purged',
  'superseded',
])

export const run: z.ZodType = z.strictObject({
  id: z.string(),
  parent: z.string().meta({ description: 'The run it is the rest of; empty for none.' }),
  lane: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  kind: runKind,
  reason: z.string(),
  started: moment,
  ended: moment,
  tries: z.int(),
  lapses: z.int(),
  events: z.array(z.string()),
  attempts: z.array(attempt).meta({ description: 'Those that failed.' }),
})
