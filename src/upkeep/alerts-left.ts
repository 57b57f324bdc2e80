// Alerts whose rule was taken out while they were raised: nobody looks at them any more, and whoever was told would wait for
// their end for ever. During a deploy some processes still have the rule, so it must be gone from all of them for a while.
import type { Millis } from '../clock.ts'
import type { Doc } from '../store/contract/index.ts'
import { ALERT_DOC, alertEvent, isTold, recordIn, type AlertParts } from './alerts.ts'
import type { Chore } from './upkeep.ts'

const LOOK_EVERY: Millis = 60_000
/** More than three times as long as a process that has the rule takes to write it again. */
const LEFT_AFTER: Millis = 10 * 60_000
const AT_ONCE = 1_000

type LeftParts = Pick<AlertParts, 'store' | 'rules' | 'publish' | 'emit'>

export function alertsLeft(parts: LeftParts): Chore {
  const { store, rules } = parts
  let watched = new Map<string, { readonly rev: number; readonly since: Millis }>()
  return {
    name: 'alerts-left',
    async work() {
      const { docs, now } = await store.readDocs({ kind: ALERT_DOC, ids: undefined, after: '', n: AT_ONCE })
      const others = docs.filter((doc) => recordIn(doc).kind !== 'clear' && rules.every(({ name }) => name !== doc.id))
      const before = watched
      watched = new Map()
      for (const doc of others) {
        const known = before.get(doc.id)
        const since = known?.rev === doc.rev ? known.since : now
        if (now - since >= LEFT_AFTER) await callOff(parts, doc)
        else watched.set(doc.id, { rev: doc.rev, since })
      }
      return LOOK_EVERY
    },
  }
}

async function callOff({ store, publish, emit }: LeftParts, doc: Doc): Promise<void> {
  const { id: name, rev: ifRev } = doc
  const record = recordIn(doc)
  const text = 'Its rule is gone.'
  // Told before it is gone, under a name by which the same again changes nothing.
  if (isTold(record)) await publish(alertEvent(name, 'cleared', { ...record, text }))
  const writes = [{ kind: ALERT_DOC, id: name, ifRev, body: undefined }]
  const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
  if (isTold(record) && kind === 'written') emit('alert.cleared', { alert: name, text })
}
