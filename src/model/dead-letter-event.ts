// `createDeadLetterEvent` builds the event `sluice/run.dead` about a dead letter. A store appends it in the commit that makes the run
// dead, so that it is stored once, also after a crash.
import { hash } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { encodeTime, ENGINE_SOURCE, isEncrypted, type Event } from './event.ts'
import { computeIdentity } from './identity.ts'
import type { Lane, RunState } from './lane.ts'
import type { RoutableEvent } from './new-event.ts'

export const DEAD_LETTER_TYPE = 'run.dead'

/** `DeadLetterData` is the data of a `sluice/run.dead` event. */
export interface DeadLetterData {
  /** The id of the dead letter, e.g. for `app.admin.deadLetters.retry`. */
  readonly deadLetter: string
  /** The run that died. If only some of its events died, the dead letter has another id. */
  readonly run: string
  readonly flow: string
  /** Null if an event of the run is encrypted, like `reason` and `error`: these texts may quote its payload. */
  readonly key: string | null
  readonly tenant: string | null
  /** Why the run is dead: `crashed`, or the error that ended it. */
  readonly reason: string | null
  /** The error of the last attempt; null if no attempt failed. */
  readonly error: string | null
  readonly attempts: number
  readonly crashes: number
  /** The first events of the dead letter, without their data. */
  readonly events: readonly DeadEvent[]
  readonly eventCount: number
  /** Null if no attempt failed. */
  readonly firstFailedAt: Millis | null
  readonly at: Millis
}

type DeadEvent = Pick<Event, 'id' | 'source' | 'type'> & { readonly subject: string | null }

/** `DeadRun` is a run that a store makes a dead letter. */
export interface DeadRun {
  readonly lane: Pick<Lane, 'flow' | 'key' | 'tenant'>
  /** The run with its last attempt, under the id of the dead letter. */
  readonly deadRun: Pick<RunState, 'id' | 'tries' | 'lapses' | 'attempts' | 'failingSince'>
  /** The run as it was claimed. Its token makes the event of each death another event. */
  readonly run: Pick<RunState, 'id' | 'token'>
  readonly reason: string
  /** The events of the run that died, and all of its events. */
  readonly died: readonly EventSummary[]
  readonly all: readonly EventSummary[]
  readonly at: Millis
}

type EventSummary = Pick<Event, 'id' | 'source' | 'type' | 'subject' | 'attributes'>

/** A batch may have a thousand events, and each delivery of the news would carry them all. */
const MAX_EVENTS_NAMED = 100
const CRASHED = 'crashed'

/** `isAboutEngine` returns whether a run took events of the engine. An event about its death could cause the next death, for ever. */
export function isAboutEngine(events: readonly Pick<Event, 'source'>[]): boolean {
  return events.some(({ source }) => source === ENGINE_SOURCE)
}

export function createDeadLetterEvent({ lane, deadRun, run, reason, died, all, at }: DeadRun): RoutableEvent {
  const isConfidential = all.some(({ attributes }) => isEncrypted(attributes))
  const open = <T>(text: T): T | null => (isConfidential ? null : text)
  const { flow, key, tenant } = lane
  const data: DeadLetterData = {
    deadLetter: deadRun.id,
    run: run.id,
    flow,
    key: open(key),
    tenant: tenant === '' ? null : tenant,
    reason: reason === CRASHED ? reason : open(reason),
    error: open(deadRun.attempts.at(-1)?.error ?? null),
    attempts: deadRun.tries,
    crashes: deadRun.lapses,
    events: died.slice(0, MAX_EVENTS_NAMED).map(({ id, source, type, subject }) => ({
      id,
      source,
      type,
      subject: subject === '' ? null : open(subject),
    })),
    eventCount: died.length,
    firstFailedAt: deadRun.failingSince === 0 ? null : deadRun.failingSince,
    at,
  }
  const dedupeId = `${DEAD_LETTER_TYPE}:${run.id}@${run.token}`
  return {
    // A store may decide a commit several times and must get the same event each time.
    id: encodeTime(at) + hash('sha256', dedupeId, 'hex').slice(0, 16),
    source: ENGINE_SOURCE,
    type: DEAD_LETTER_TYPE,
    time: at,
    tenant,
    subject: isConfidential ? '' : key,
    attributes: '',
    body: Buffer.from(JSON.stringify(data)),
    identity: computeIdentity(ENGINE_SOURCE, tenant, dedupeId),
    dedupeFor: 0,
    request: NO_BYTES,
  }
}

const NO_BYTES = new Uint8Array()
