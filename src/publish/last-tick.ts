// This file stores the last published tick of each schedule. A schedule makes up for ticks missed since then, not for
// earlier ones.
import type { Millis } from '../clock.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'every'
const TRIES = 5

/** `readLastTick` returns the time at which the schedule was first seen, if it has not ticked yet. */
export async function readLastTick(store: Store, name: string): Promise<Millis> {
  const { doc, now } = await readTick(store, name)
  if (doc !== undefined) return parseTick(doc)
  await writeLastTick(store, name, now)
  return now
}

export async function writeLastTick(store: Store, name: string, tick: Millis): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { doc } = await readTick(store, name)
    if (doc !== undefined && parseTick(doc) >= tick) return
    const writes = [{ kind: KIND, id: name, ifRev: doc?.rev ?? 0, body: Buffer.from(String(tick)) }]
    const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    if (kind === 'written') return
  }
}

async function readTick(store: Store, name: string): Promise<{ readonly doc: Doc | undefined; readonly now: Millis }> {
  const { docs, now } = await store.readDocs({ kind: KIND, ids: [name], after: '', n: 1 })
  return { doc: docs[0], now }
}

function parseTick(doc: Doc): Millis {
  return Number(Buffer.from(doc.body).toString())
}
