// What `explain` answers: the sentence, and every figure in it.
import { z } from 'zod'
import type { ExplanationFacts } from '../../observe/explain-facts.ts'
import { moment } from '../schemas.ts'
import { laneState } from './lane-schemas.ts'

const state = z.union([laneState, z.enum(['empty', 'unknown-flow'])])
const text = z.string().optional()
const at = moment.optional()
const count = z.int().optional()
const ms = z.number().optional().meta({ description: 'Milliseconds.' })

/** What is not there is not so, never, or not known. */
const FACTS = {
  flow: z.string(),
  key: z.string(),
  state,
  laneState: z.union([laneState, z.literal('empty')]),
  behindHold: laneState.optional(),
  now: moment,
  deadline: at,
  in: ms,
  latest: at,
  waiting: z.int(),
  replays: z.int(),
  queued: z.int(),
  leftOver: z.boolean(),
  ended: at,
  keptUntil: at,
  heldBy: text,
  holdReason: text,
  heldUntil: at,
  holdOver: z.boolean(),
  run: text,
  kind: z.enum(['live', 'replay', 'letter']).optional(),
  attempt: count,
  tries: count,
  triesOf: count,
  triesLeft: count,
  nextTry: at,
  started: at,
  leaseEnds: at,
  events: count,
  lapses: count,
  error: text,
  againSince: at,
  putOffBy: text,
  cancelAsked: z.boolean(),
  purged: z.boolean(),
  line: z.enum(['healthy', 'failing', 'suspect']).optional(),
  group: text,
  position: count,
  ahead: count,
  aheadExact: z.boolean().optional(),
  liveInGroup: count,
  blockedBy: text,
  blockedSince: at,
  blockedReason: text,
  blockedTries: count,
  queuedLetter: text,
  pausedBy: text,
  pauseReason: text,
  pausedSince: at,
  full: z.boolean(),
  processFull: z.boolean(),
  lingers: z.boolean(),
  limit: text,
  limitIn: ms,
  limitPausedFor: ms,
  lastRun: text,
  lastRunKind: text,
  lastRunEnded: at,
  dead: count,
  deadExact: z.boolean().optional(),
  declared: z.boolean(),
  served: z.boolean(),
  concurrency: z.number().optional(),
  pressure: z.number().optional(),
  quiet: ms,
  globs: z.array(z.string()).optional(),
  keyed: z.boolean(),
} satisfies Record<keyof ExplanationFacts, z.ZodType>

export const explanation: z.ZodType = z.strictObject({
  flow: z.string(),
  key: z.string(),
  state,
  text: z.string(),
  facts: z.strictObject(FACTS),
})
