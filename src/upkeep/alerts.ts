// Looks at the alerts of an app, in one process of all: which one is settled by a permit of the store (L20). What is raised or
// called off is published as an event, once each, so that any flow can carry it.
import type { Millis } from '../clock.ts'
import { CLEAR, next, type AlertFigures, type AlertRule, type AlertState } from '../model/alert.ts'
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

/** Undefined: there is nothing to look at. */
export function alerting(parts: AlertParts): Chore | undefined {
  const { store, process, rules, figures } = parts
  if (rules.length === 0) return undefined
  const broken = new Set<string>()
  return {
    name: 'alerts',
    prompt: true,
    async work() {
      const wants = [{ name: 'sluice.alerts', want: 1, max: 1 }]
      const { granted } = await store.permits({ process, lease: LEASE, wants })
      if ((granted[0] ?? 0) === 0) return LOOK_EVERY
      const seen = await figures()
      const { docs } = await store.readDocs({
        kind: ALERT_DOC,
        ids: rules.map(({ name }) => name),
        after: '',
        n: rules.length,
      })
      const known = new Map(docs.map((doc) => [doc.id, doc]))
      for (const rule of rules) await look(parts, rule, { seen, doc: known.get(rule.name), broken })
      return LOOK_EVERY
    },
  }
}

interface Seen {
  readonly seen: AlertFigures
  readonly doc: Doc | undefined
  /** Conditions that threw, and whose owner has been told. */
  readonly broken: Set<string>
}

async function look(parts: AlertParts, rule: AlertRule, { seen, doc, broken }: Seen): Promise<void> {
  const before = doc === undefined ? CLEAR : stateIn(doc)
  const text = textOf(parts, rule, seen, broken)
  const { state, told } = next(before, { now: seen.now, text, for: rule.for })
  // Told before it is written: a process that dies in between tells it again, under the same name, which changes nothing.
  const of = told === 'cleared' ? before : state
  if (told !== undefined && (of.kind === 'raised' || of.kind === 'easing')) await tell(parts, rule.name, told, of)
  if (JSON.stringify(state) === JSON.stringify(before)) return
  const writes = [{ kind: ALERT_DOC, id: rule.name, ifRev: doc?.rev ?? 0, body: Buffer.from(JSON.stringify(state)) }]
  // Somebody else was quicker: then it is said already.
  await parts.store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
}

type Told = Extract<AlertState, { readonly text: string }>

async function tell(parts: AlertParts, name: string, told: 'raised' | 'cleared', { since, text }: Told): Promise<void> {
  const type = `alert.${told}` as const
  const dedupeId = `${type}:${name}@${since}`
  await parts.publish({ type, source: 'sluice', subject: name, dedupeId, data: { alert: name, text, since } })
  parts.emit(type, { alert: name, text })
}

/** One that throws holds nobody up, and is told of once. */
function textOf(
  { emit }: AlertParts,
  { name, when }: AlertRule,
  seen: AlertFigures,
  broken: Set<string>,
): string | undefined {
  try {
    const answer: unknown = when(seen)
    broken.delete(name)
    return answer === true ? `${name} holds.` : typeof answer === 'string' && answer !== '' ? answer : undefined
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (!broken.has(name)) emit('alert.raised', { alert: `broken:${name}`, text: `Its condition threw: ${why}` })
    broken.add(name)
    return undefined
  }
}

export function stateIn(doc: Doc): AlertState {
  return JSON.parse(Buffer.from(doc.body).toString()) as AlertState
}
