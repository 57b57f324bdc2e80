// `createStaleAlertTask` clears raised alerts whose rule was removed, because no process checks them any more. During a deploy some processes
// still have the rule, so it must be missing from all of them for a while.
import type { Millis } from '../clock.ts'
import type { Doc } from '../store/contract/index.ts'
import { ALERT_DOC, createAlertEvent, isAnnounced, parseAlertRecord, type AlertTaskDependencies } from './alerts.ts'
import type { MaintenanceTask } from './maintenance.ts'

const CHECK_EVERY: Millis = 60_000
/** More than three times the interval at which a process with the rule rewrites the record. */
const STALE_AFTER: Millis = 10 * 60_000
const PAGE = 1_000

type StaleAlertDependencies = Pick<AlertTaskDependencies, 'store' | 'rules' | 'publish' | 'emit'>

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
      return CHECK_EVERY
    },
  }
}

async function clearAlert({ store, publish, emit }: StaleAlertDependencies, doc: Doc): Promise<void> {
  const { id: name, rev: ifRev } = doc
  const record = parseAlertRecord(doc)
  const text = 'Its rule was removed.'
  // The event is published before the record is removed, under a dedupe id that makes a repeat harmless.
  if (isAnnounced(record)) await publish(createAlertEvent(name, 'cleared', { ...record, text }))
  const writes = [{ kind: ALERT_DOC, id: name, ifRev, body: undefined }]
  const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
  if (isAnnounced(record) && kind === 'written') emit('alert.cleared', { alert: name, text })
}
