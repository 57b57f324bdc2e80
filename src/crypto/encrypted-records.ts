// These functions encrypt and decrypt the texts about encrypted events in the records of lanes, runs, dead letters and unrouted events.
import type { Attempt, RunState } from '../model/lane.ts'
import { isRoutingFault } from '../model/routing.ts'
import type { RunOutcome } from '../model/settle.ts'
import type { UnroutedFlow, PlaceItem, RecordKind, RecordTypes, Settlement } from '../store/contract/index.ts'
import { isEncryptedText, type EncryptedTexts } from './encrypted-texts.ts'

type TextTransform = (text: string) => Promise<string>

export async function encryptSettle(texts: EncryptedTexts, settle: Settlement): Promise<Settlement> {
  if (settle.confidential !== true) return settle
  const encrypt: TextTransform = (text) => texts.encrypt(text, lanePurpose(settle.lane))
  const { attempt, outcome } = settle
  return {
    ...settle,
    attempt: attempt && (await transformAttempt(attempt, encrypt)),
    outcome: await transformOutcome(outcome, encrypt),
  }
}

export async function encryptPlaceItem(texts: EncryptedTexts, item: PlaceItem): Promise<PlaceItem> {
  if (item.kind !== 'unrouted' || item.confidential !== true) return item
  return { ...item, unrouted: await Promise.all(item.unrouted.map((entry) => encryptUnrouted(texts, entry))) }
}

/** `encryptUnrouted` encrypts the error of user code or of a schema, which may quote the payload. Errors of other reasons only name the flow. */
export async function encryptUnrouted<M extends UnroutedFlow>(texts: EncryptedTexts, entry: M): Promise<M> {
  if (!isRoutingFault(entry.reason)) return entry
  return { ...entry, error: await texts.encrypt(entry.error, flowPurpose(entry.flow)) }
}

export async function decryptUnrouted<M extends UnroutedFlow>(texts: EncryptedTexts, entry: M): Promise<M> {
  if (!isEncryptedText(entry.error)) return entry
  return { ...entry, error: await texts.decrypt(entry.error, flowPurpose(entry.flow)) }
}

export async function decryptRecord<K extends RecordKind>(
  texts: EncryptedTexts,
  kind: K,
  record: RecordTypes[K],
): Promise<RecordTypes[K]> {
  const any: unknown = record
  if (kind === 'unrouted') return (await decryptUnrouted(texts, any as RecordTypes['unrouted'])) as RecordTypes[K]
  if (kind === 'lanes') return (await decryptLane(texts, any as RecordTypes['lanes'])) as RecordTypes[K]
  if (kind === 'runs' || kind === 'dead') return (await decryptEnded(texts, any as EndedRecord)) as RecordTypes[K]
  return record
}

type EndedRecord = Pick<RecordTypes['runs'], 'lane' | 'reason' | 'attempts'>

async function decryptEnded<E extends EndedRecord>(texts: EncryptedTexts, ended: E): Promise<E> {
  if (!isEncryptedText(ended.reason) && !ended.attempts.some(hasEncryptedError)) return ended
  const decrypt: TextTransform = (text) => texts.decrypt(text, lanePurpose(ended.lane))
  return { ...ended, reason: await decrypt(ended.reason), attempts: await transformAttempts(ended.attempts, decrypt) }
}

async function decryptLane(texts: EncryptedTexts, lane: RecordTypes['lanes']): Promise<RecordTypes['lanes']> {
  const { run } = lane
  if (run === undefined || !run.attempts.some(hasEncryptedError)) return lane
  const attempts = await transformAttempts(run.attempts, (text) => texts.decrypt(text, lanePurpose(lane.id)))
  const decrypted: RunState = { ...run, attempts }
  return { ...lane, run: decrypted }
}

function hasEncryptedError({ error }: Attempt): boolean {
  return isEncryptedText(error)
}

function transformAttempts(attempts: readonly Attempt[], change: TextTransform): Promise<readonly Attempt[]> {
  return Promise.all(attempts.map((attempt) => transformAttempt(attempt, change)))
}

async function transformAttempt(attempt: Attempt, change: TextTransform): Promise<Attempt> {
  return { ...attempt, error: await change(attempt.error) }
}

async function transformOutcome(outcome: RunOutcome, change: TextTransform): Promise<RunOutcome> {
  if (!('reason' in outcome)) return outcome
  return { ...outcome, reason: await change(outcome.reason) }
}

function lanePurpose(lane: string): string {
  return `lane ${lane}`
}

function flowPurpose(flow: string): string {
  return `flow ${JSON.stringify(flow)}`
}
