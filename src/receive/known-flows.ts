// Flows are in the store under one epoch (L18): a process that appends knows of all of them, also of those it does not serve.
import type { Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'flow'
const PAGE = 500
const WRITE_TRIES = 10
/** A flow that nobody has served for so long is no longer routed to; what waits in it stays, and is an alert. */
const SERVED_WITHIN: Millis = 7 * 86_400_000
/** How often a process says that it still serves its flows. */
export const SAY_SERVED_EVERY: Millis = 60_000

interface Written {
  /** Null: a predicate, which only its own process can ask. */
  readonly globs: readonly string[] | null
  readonly by: string
  readonly servedAt: Millis
}

interface Foreign {
  readonly name: string
  wants(event: FlowEvent): boolean
}

export interface KnownFlowsParts {
  readonly store: Store
  readonly process: string
  readonly flows: () => readonly Flow[]
  readonly matcher: (globs: readonly string[]) => (event: FlowEvent) => boolean
  readonly conflict: (flow: string, text: string) => void
}

export class KnownFlows {
  readonly #parts: KnownFlowsParts
  foreign: readonly Foreign[] = []
  epoch = 0

  constructor(parts: KnownFlowsParts) {
    this.#parts = parts
  }

  /** Says that this process serves its flows. The epoch rises if that changes where events go. */
  async say(): Promise<void> {
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      const { docs, now } = await this.#read()
      if (await this.#write(docs, now)) return
    }
  }

  /** Somebody has changed the routes. */
  async refresh(): Promise<void> {
    await this.#read()
  }

  async #read(): Promise<{ readonly docs: ReadonlyMap<string, Doc>; readonly now: Millis }> {
    const { store } = this.#parts
    const docs = new Map<string, Doc>()
    let after = ''
    for (;;) {
      const reply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      for (const doc of reply.docs) docs.set(doc.id, doc)
      if (reply.next === undefined) {
        this.#learn(docs, reply.now)
        this.epoch = reply.routes
        return { docs, now: reply.now }
      }
      after = reply.next
    }
  }

  #learn(docs: ReadonlyMap<string, Doc>, now: Millis): void {
    const own = new Set(this.#parts.flows().map((flow) => flow.name))
    this.foreign = [...docs.values()].flatMap((doc) => {
      const { globs, servedAt } = writtenIn(doc)
      if (own.has(doc.id) || now - servedAt > SERVED_WITHIN) return []
      return { name: doc.id, wants: globs === null ? () => true : this.#parts.matcher(globs) }
    })
  }

  async #write(docs: ReadonlyMap<string, Doc>, now: Millis): Promise<boolean> {
    const { store, process, conflict } = this.#parts
    let changes = false
    const writes = this.#parts.flows().map((flow) => {
      const doc = docs.get(flow.name)
      const old = doc === undefined ? undefined : writtenIn(doc)
      const globs = flow.globs ?? null
      const differs = JSON.stringify(old?.globs) !== JSON.stringify(globs)
      changes ||= differs
      if (old !== undefined && differs && old.by !== process && now - old.servedAt < 2 * SAY_SERVED_EVERY) {
        conflict(flow.name, `Process ${old.by} serves it with other events; the newest start counts.`)
      }
      const written: Written = { globs, by: process, servedAt: now }
      return { kind: KIND, id: flow.name, ifRev: doc?.rev ?? 0, body: Buffer.from(JSON.stringify(written)) }
    })
    if (writes.length === 0) return true
    const reply = await store.writeDocs({ writes, raiseRoutes: changes, audit: undefined })
    if (reply.kind === 'conflict') return false
    this.epoch = reply.routes
    return true
  }
}

function writtenIn(doc: Doc): Written {
  return JSON.parse(Buffer.from(doc.body).toString()) as Written
}
