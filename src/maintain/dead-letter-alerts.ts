// `createDeadLetterAlertTask` alerts about dead letters that publish no `sluice/run.dead` event, because their run took events of the
// engine itself and the news about it could go round for ever.
import type { Millis } from '../clock.ts'
import { isAboutEngine } from '../model/dead-letter-event.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { DeadLetterRecord, Store } from '../store/contract/index.ts'
import type { MaintenanceTask } from './maintenance.ts'

export interface DeadLetterAlertDependencies {
  readonly store: Pick<Store, 'find' | 'get'>
  /** The flows of this process that may take events of the engine. */
  readonly flows: readonly string[]
  readonly emit: AnyListener
}

export const DEAD_LETTER_ALERTS = 'dead-letter-alerts'

const CHECK_EVERY: Millis = 10_000
const PAGE = 100
/** The task looks at this many dead letters of a flow, newest first. */
const MAX_CHECKED = 1_000

/** `createDeadLetterAlertTask` returns undefined if no flow may take events of the engine. */
export function createDeadLetterAlertTask({
  store,
  flows,
  emit,
}: DeadLetterAlertDependencies): MaintenanceTask | undefined {
  if (flows.length === 0) return undefined
  const raised = new Set<string>()
  /** By dead letter: whether it raises the alert. The cache lets the task read the events of each dead letter only once. */
  let known = new Map<string, boolean>()
  return {
    name: DEAD_LETTER_ALERTS,
    async run() {
      const seen = new Map<string, boolean>()
      for (const flow of flows) {
        const silent = await findSilent(store, flow, { known, seen })
        if (silent === undefined ? !raised.has(flow) : raised.has(flow)) continue
        const alert = `dead-letters:${flow}`
        if (silent === undefined) {
          raised.delete(flow)
          emit('alert.cleared', { alert, text: `${flow} has no such dead letter any more.` })
        } else {
          raised.add(flow)
          emit('alert.raised', { alert, text: describe(flow, silent) })
        }
      }
      known = seen
      return CHECK_EVERY
    },
  }
}

function describe(flow: string, { id }: DeadLetterRecord): string {
  return `Dead letter ${id} of ${flow} took an event of Sluice itself, so no sluice/run.dead event is published for it. Retry or drop it.`
}

interface CheckedDeadLetters {
  readonly known: ReadonlyMap<string, boolean>
  readonly seen: Map<string, boolean>
}

async function findSilent(
  store: DeadLetterAlertDependencies['store'],
  flow: string,
  { known, seen }: CheckedDeadLetters,
): Promise<DeadLetterRecord | undefined> {
  let cursor = ''
  for (let checked = 0; checked < MAX_CHECKED; checked += PAGE) {
    const { items, next } = await store.find({ kind: 'dead', filter: { flow }, cursor, n: PAGE })
    for (const deadLetter of items) {
      const isSilent = known.get(deadLetter.id) ?? (await isOfEngine(store, deadLetter))
      seen.set(deadLetter.id, isSilent)
      if (isSilent) return deadLetter
    }
    if (next === undefined) return undefined
    cursor = next
  }
  return undefined
}

async function isOfEngine(store: DeadLetterAlertDependencies['store'], { events }: DeadLetterRecord): Promise<boolean> {
  for (const id of events) {
    const { item } = await store.get({ kind: 'events', id })
    if (item !== undefined && isAboutEngine([item])) return true
  }
  return false
}
