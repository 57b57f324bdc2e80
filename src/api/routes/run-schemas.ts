// The schema of a run in responses.
import { z } from 'zod'
import type { RunRecord } from '../../store/contract/index.ts'
import { attempt, timestamp } from '../schemas.ts'
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
  parent: z.string().meta({ description: 'The run that this run is the rest of, or empty.' }),
  lane: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  kind: runKind,
  reason: z.string(),
  started: timestamp,
  ended: timestamp,
  tries: z.int(),
  lapses: z.int(),
  events: z.array(z.string()),
  attempts: z.array(attempt).meta({ description: 'The failed attempts.' }),
})
