// Looks at the alerts of an app, each in one process of all: which one is settled by a permit of the store (L20), one for each
// rule, for during a deploy not every process has them all. What is raised or called off is published as an event, once each,
// so that any flow can carry it.
import type { Millis } from '../clock.ts'
import { CLEAR, next, type AlertFigures, type AlertRecord, type AlertRule, type AlertState } from '../model/alert.ts'
import type { AnyListener } from '../observe/events.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import type { Chore } from './upkeep.ts'

export interface AlertParts {
  readonly store: Store
  readonly process: string
  readonly rules: readonly AlertRule[]
  readonly figures: () => Promise<AlertFigures>
  /** The same dedupe id again changes nothing. */
  readonly publish: (event: AlertEvent) => Promise<unknown>
  readonly emit: AnyListener
}

interface AlertEvent {
  readonly type: 'alert.raised' | 'alert.cleared'
  readonly source: 'sluice'
  readonly subject: string
  readonly dedupeId: string
  readonly data: { readonly alert: string; readonly text: string; readonly since: Millis }
}

export const ALERT_DOC = 'alert'

const LOOK_EVERY: Millis = 10_000
/** Of a process that has died, another takes over after this. */
const LEASE: Millis = 30_000
/** What is not clear is written this often, changed or not: others see that its rule is still there. */
const KEEP_EVERY: Millis = 3 * 60_000

/** Undefined: there is nothing to look at. */
export function alerting(parts: AlertParts): Chore | undefined {
  const { store, process, rules, figures } = parts
  if (rules.length === 0) return undefined
  const kept = new Map<string, Millis>()
  return {
    name: 'alerts',
    prompt: true,
    async work() {
      const wants = rules.map(({ name }) => ({ name: `sluice.alert/${name}`, want: 1, max: 1 }))
      const { granted } = await store.permits({ process, lease: LEASE, wants })
      const ours = rules.filter((_, at) => (granted[at] ?? 0) > 0)
      if (ours.length === 0) return LOOK_EVERY
      const seen = await figures()
      const ids = ours.map(({ name }) => name)
      const { docs } = await store.readDocs({ kind: ALERT_DOC, ids, after: '', n: ids.length })
      const known = new Map(docs.map((doc) => [doc.id, doc]))
      for (const rule of ours) await look(parts, rule, { seen, doc: known.get(rule.name), kept })
      return LOOK_EVERY
    },
  }
}

interface Seen {
  readonly seen: AlertFigures
  readonly doc: Doc | undefined
  /** When this process last wrote each. */
  readonly kept: Map<string, Millis>
}

async function look(parts: AlertParts, rule: AlertRule, { seen, doc, kept }: Seen): Promise<void> {
  const { broken: wasBroken, ...before }: AlertRecord = doc === undefined ? CLEAR : recordIn(doc)
  const { text, broken } = asked(rule, seen)
  tellBroken(parts, rule.name, wasBroken, broken)
  // While nobody knows, what is raised stays so, and nothing else is.
  const { state, told } =
    broken === undefined ? next(before, { now: seen.now, text, for: rule.for }) : { state: before, told: undefined }
  // Told before it is written: a process that dies in between tells it again, under the same name, which changes nothing.
  const of = told === 'cleared' ? before : state
  if (told !== undefined && isTold(of)) await tell(parts, rule.name, told, of)
  const record: AlertRecord = broken === undefined ? state : { ...state, broken }
  const isSame = JSON.stringify(record) === JSON.stringify(doc === undefined ? CLEAR : recordIn(doc))
  const isKept = state.kind === 'clear' || seen.now - (kept.get(rule.name) ?? 0) < KEEP_EVERY
  if (isSame && isKept) return
  kept.set(rule.name, seen.now)
  const writes = [{ kind: ALERT_DOC, id: rule.name, ifRev: doc?.rev ?? 0, body: Buffer.from(JSON.stringify(record)) }]
  // Somebody else was quicker: then it is said already.
  await parts.store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
}

type Told = Extract<AlertState, { readonly text: string }>

/** Whether people have heard of it. */
export function isTold(state: AlertState): state is Told {
  return state.kind === 'raised' || state.kind === 'easing'
}

async function tell(parts: AlertParts, name: string, told: 'raised' | 'cleared', of: Told): Promise<void> {
  const event = alertEvent(name, told, of)
  await parts.publish(event)
  parts.emit(event.type, { alert: name, text: of.text })
}

export function alertEvent(name: string, told: 'raised' | 'cleared', { since, text }: Told): AlertEvent {
  const type = `alert.${told}` as const
  const dedupeId = `${type}:${name}@${since}`
  return { type, source: 'sluice', subject: name, dedupeId, data: { alert: name, text, since } }
}

/** Once each way, not at every look. */
function tellBroken({ emit }: AlertParts, name: string, was: string | undefined, is: string | undefined): void {
  const alert = `broken:${name}`
  if (was === undefined && is !== undefined) emit('alert.raised', { alert, text: `Its condition threw: ${is}` })
  if (was !== undefined && is === undefined) emit('alert.cleared', { alert, text: 'Its condition can be asked again.' })
}

/** What is so; undefined: it is not. One that throws holds nobody up. */
function asked(
  { name, when }: AlertRule,
  seen: AlertFigures,
): { readonly text?: string | undefined; readonly broken?: string } {
  try {
    const answer: unknown = when(seen)
    return {
      text: answer === true ? `${name} holds.` : typeof answer === 'string' && answer !== '' ? answer : undefined,
    }
  } catch (error) {
    return { broken: error instanceof Error ? error.message : String(error) }
  }
}

export function recordIn(doc: Doc): AlertRecord {
  return JSON.parse(Buffer.from(doc.body).toString()) as AlertRecord
}
