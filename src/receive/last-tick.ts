// Up to which tick a schedule is known to have been published: it makes up for what it missed since, not for what was before.
import type { Millis } from '../clock.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'every'
const TRIES = 5

/** The moment at which it was first seen, if it has not ticked yet. */
export async function lastTick(store: Store, name: string): Promise<Millis> {
  const { doc, now } = await read(store, name)
  if (doc !== undefined) return tickIn(doc)
  await setLastTick(store, name, now)
  return now
}

export async function setLastTick(store: Store, name: string, tick: Millis): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { doc } = await read(store, name)
    if (doc !== undefined && tickIn(doc) >= tick) return
    const writes = [{ kind: KIND, id: name, ifRev: doc?.rev ?? 0, body: Buffer.from(String(tick)) }]
    const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    if (kind === 'written') return
  }
}

async function read(store: Store, name: string): Promise<{ readonly doc: Doc | undefined; readonly now: Millis }> {
  const { docs, now } = await store.readDocs({ kind: KIND, ids: [name], after: '', n: 1 })
  return { doc: docs[0], now }
}

function tickIn(doc: Doc): Millis {
  return Number(Buffer.from(doc.body).toString())
}
