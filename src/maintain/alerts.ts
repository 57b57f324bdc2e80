// `createAlertTask` checks the alert rules of an app. One process checks each rule, chosen by a permit of the store (L20), with one permit
// per rule, because during a deploy not every process has every rule. It publishes each raise and clear once, as an event for any flow.
import type { Millis } from '../clock.ts'
import {
  CLEAR_ALERT,
  advanceAlert,
  type AlertStats,
  type AlertRecord,
  type AlertRule,
  type AlertState,
} from '../model/alert.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { parseDoc, readDocsById, toDocBody } from '../store/documents.ts'
import type { MaintenanceTask } from './maintenance.ts'

export interface AlertTaskDependencies {
  readonly store: Store
  readonly process: string
  readonly rules: readonly AlertRule[]
  readonly readStats: () => Promise<AlertStats>
  /** Publishing the same dedupe id again changes nothing. */
  readonly publish: (event: AlertEvent) => Promise<unknown>
  readonly emit: AnyListener
}

export interface AlertEvent {
  readonly type: 'alert.raised' | 'alert.cleared'
  readonly source: 'sluice'
  readonly subject: string
  readonly dedupeId: string
  readonly data: { readonly alert: string; readonly text: string; readonly since: Millis }
}

export const ALERT_DOC = 'alert'

const CHECK_EVERY: Millis = 10_000
/** After this time, another process takes over the rules of a dead one. */
const LEASE: Millis = 30_000
/** The record of a raised alert is rewritten this often, so that other processes see that its rule still exists. */
const REWRITE_EVERY: Millis = 3 * 60_000

/** `createAlertTask` returns undefined if the app has no rules. */
export function createAlertTask(deps: AlertTaskDependencies): MaintenanceTask | undefined {
  const { store, process, rules, readStats } = deps
  if (rules.length === 0) return undefined
  const kept = new Map<string, Millis>()
  return {
    name: 'alerts',
    isPrompt: true,
    async run() {
      const wants = rules.map(({ name }) => ({ name: `sluice.alert/${name}`, want: 1, max: 1 }))
      const { granted } = await store.leasePermits({ process, lease: LEASE, requests: wants })
      const ours = rules.filter((_, at) => (granted[at] ?? 0) > 0)
      if (ours.length === 0) return CHECK_EVERY
      const seen = await readStats()
      const names = ours.map(({ name }) => name)
      const known = await readDocsById(store, ALERT_DOC, names)
      for (const rule of ours) await checkAlert(deps, rule, { stats: seen, doc: known.get(rule.name), writtenAt: kept })
      return CHECK_EVERY
    },
  }
}

interface AlertCheck {
  readonly stats: AlertStats
  readonly doc: Doc | undefined
  /** When this process last wrote each record. */
  readonly writtenAt: Map<string, Millis>
}

async function checkAlert(
  deps: AlertTaskDependencies,
  rule: AlertRule,
  { stats: seen, doc, writtenAt: kept }: AlertCheck,
): Promise<void> {
  const { broken: wasBroken, ...before }: AlertRecord = doc === undefined ? CLEAR_ALERT : parseAlertRecord(doc)
  const { text, broken } = evaluateRule(rule, seen)
  announceBroken(deps, rule.name, wasBroken, broken)
  // A condition that throws leaves the state unchanged: a raised alert stays raised and no other one is raised.
  const { state, change } =
    broken === undefined
      ? advanceAlert(before, { now: seen.now, text, for: rule.for })
      : { state: before, change: undefined }
  // The event is published before the record is written. If the process dies in between, the next one publishes it again under the
  // same dedupe id, which changes nothing.
  const of = change === 'cleared' ? before : state
  if (change !== undefined && isAnnounced(of)) await announce(deps, rule.name, change, of)
  const record: AlertRecord = broken === undefined ? state : { ...state, broken }
  const isSame = JSON.stringify(record) === JSON.stringify(doc === undefined ? CLEAR_ALERT : parseAlertRecord(doc))
  const isKept = state.kind === 'clear' || seen.now - (kept.get(rule.name) ?? 0) < REWRITE_EVERY
  if (isSame && isKept) return
  kept.set(rule.name, seen.now)
  const writes = [{ kind: ALERT_DOC, id: rule.name, ifRev: doc?.rev ?? 0, body: toDocBody(record) }]
  // On a conflict, another process was faster and has published the same change.
  await deps.store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
}

type AnnouncedState = Extract<AlertState, { readonly text: string }>

/** `isAnnounced` returns whether the alert has been raised and not cleared. */
function isAnnounced(state: AlertState): state is AnnouncedState {
  return state.kind === 'raised' || state.kind === 'easing'
}

async function announce(
  deps: AlertTaskDependencies,
  name: string,
  change: 'raised' | 'cleared',
  of: AnnouncedState,
): Promise<void> {
  const event = createAlertEvent(name, change, of)
  await deps.publish(event)
  deps.emit(event.type, { alert: name, text: of.text })
}

function createAlertEvent(name: string, change: 'raised' | 'cleared', { since, text }: AnnouncedState): AlertEvent {
  const type = `alert.${change}` as const
  const dedupeId = `${type}:${name}@${since}`
  return { type, source: 'sluice', subject: name, dedupeId, data: { alert: name, text, since } }
}

/** `announceBroken` emits an alert when a condition starts or stops throwing, and not at every check. */
function announceBroken(
  { emit }: AlertTaskDependencies,
  name: string,
  was: string | undefined,
  is: string | undefined,
): void {
  const alert = `broken:${name}`
  if (was === undefined && is !== undefined)
    emit('alert.raised', { alert, text: `The condition of the alert threw: ${is}` })
  if (was !== undefined && is === undefined)
    emit('alert.cleared', { alert, text: 'The condition of the alert no longer throws.' })
}

/** `evaluateRule` returns the text of a true condition, or no text. A condition that throws does not stop the other rules. */
function evaluateRule(
  { name, when }: AlertRule,
  stats: AlertStats,
): { readonly text?: string | undefined; readonly broken?: string } {
  try {
    const answer: unknown = when(stats)
    return {
      text: answer === true ? `${name} holds.` : typeof answer === 'string' && answer !== '' ? answer : undefined,
    }
  } catch (error) {
    return { broken: error instanceof Error ? error.message : String(error) }
  }
}

export function parseAlertRecord(doc: Doc): AlertRecord {
  return parseDoc(doc) as AlertRecord
}

const STALE_CHECK_EVERY: Millis = 60_000
/** More than three times the interval at which a process with the rule rewrites the record. */
const STALE_AFTER: Millis = 10 * 60_000
const PAGE = 1_000

type StaleAlertDependencies = Pick<AlertTaskDependencies, 'store' | 'rules' | 'publish' | 'emit'>

/**
 * `createStaleAlertTask` clears raised alerts whose rule was removed, because no process checks them any more. During a
 * deploy some processes still have the rule, so it must be missing from all of them for a while.
 */
export function createStaleAlertTask(deps: StaleAlertDependencies): MaintenanceTask {
  const { store, rules } = deps
  let watched = new Map<string, { readonly rev: number; readonly since: Millis }>()
  return {
    name: 'alerts-left',
    async run() {
      const { docs, now } = await store.readDocs({ kind: ALERT_DOC, ids: undefined, after: '', n: PAGE })
      const others = docs.filter(
        (doc) => parseAlertRecord(doc).kind !== 'clear' && rules.every(({ name }) => name !== doc.id),
      )
      const before = watched
      watched = new Map()
      for (const doc of others) {
        const known = before.get(doc.id)
        const since = known?.rev === doc.rev ? known.since : now
        if (now - since >= STALE_AFTER) await clearAlert(deps, doc)
        else watched.set(doc.id, { rev: doc.rev, since })
      }
      return STALE_CHECK_EVERY
    },
  }
}

async function clearAlert({ store, publish, emit }: StaleAlertDependencies, doc: Doc): Promise<void> {
  const { id: name, rev: ifRev } = doc
  const record = parseAlertRecord(doc)
  const text = 'The alert is no longer declared.'
  // The event is published before the record is removed, under a dedupe id that makes a repeat harmless.
  if (isAnnounced(record)) await publish(createAlertEvent(name, 'cleared', { ...record, text }))
  const writes = [{ kind: ALERT_DOC, id: name, ifRev, body: undefined }]
  const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
  if (isAnnounced(record) && kind === 'written') emit('alert.cleared', { alert: name, text })
}
