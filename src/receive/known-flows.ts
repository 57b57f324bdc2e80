// Flows are in the store under one epoch (L18): a process that appends knows of all of them, also of those it does not serve.
import type { Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import type { Doc, Reply, Store } from '../store/contract/index.ts'

const KIND = 'flow'
const PAGE = 500
const WRITE_TRIES = 10
/** A flow that nobody has served for so long is no longer routed to; what waits in it stays, and is an alert. */
const SERVED_WITHIN: Millis = 7 * 86_400_000
/** How often a process says that it still serves its flows. */
export const SAY_SERVED_EVERY: Millis = 20_000
const LATELY: Millis = 3 * SAY_SERVED_EVERY

interface Written {
  /** Null: a predicate, which only its own process can ask. */
  readonly globs: readonly string[] | null
  readonly by: string
  readonly servedAt: Millis
  /** Of the engine's own: nothing that others publish is for it. Earlier versions did not say. */
  readonly internal?: boolean
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
  /** Before the store is asked; what it gives is told the answer. */
  readonly asking: () => (reply: Reply) => void
}

export class KnownFlows {
  readonly #parts: KnownFlowsParts
  /** Flows that others serve, or have served lately, and that get what this process publishes. */
  foreign: readonly Foreign[] = []
  /** When another process last said that it serves a flow, the engine's own included. */
  #served: ReadonlyMap<string, Millis> = new Map()
  epoch = 0
  /** Whether this process has declared its flows: from then on the newer declaration is that of others. */
  #hasSaid = false
  /** Flows of this process that another one has declared otherwise, later: what comes for them is not this one's. */
  readonly overruled: Set<string> = new Set()
  readonly #told = new Set<string>()

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

  /** What others serve, or have served lately. */
  get elsewhere(): readonly string[] {
    return [...this.#served.keys()]
  }

  /** When another process last said that it serves the flow. */
  servedAt(flow: string): Millis | undefined {
    return this.#served.get(flow)
  }

  /** No event is routed to it any more. `running`: a process serves it, and would only declare it again. */
  async retire(name: string, by: string): Promise<'ok' | 'missing' | 'running'> {
    const { store, flows } = this.#parts
    if (flows().some((flow) => flow.name === name)) return 'running'
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      const { docs, now } = await this.#read()
      const doc = docs.get(name)
      if (doc === undefined) return 'missing'
      if (now - writtenIn(doc).servedAt < LATELY) return 'running'
      const writes = [{ kind: KIND, id: name, ifRev: doc.rev, body: undefined }]
      const reply = await store.writeDocs({
        writes,
        raiseRoutes: true,
        audit: { who: by, what: `retire flow ${name}` },
      })
      if (reply.kind === 'conflict') continue
      await this.#read()
      return 'ok'
    }
    return 'running'
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
      const heard = this.#parts.asking()
      const reply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      heard(reply)
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
    const others = [...docs.values()]
      .map((doc) => ({ name: doc.id, ...writtenIn(doc) }))
      .filter(({ name, servedAt }) => !own.has(name) && now - servedAt <= SERVED_WITHIN)
    this.#served = new Map(others.map(({ name, servedAt }) => [name, servedAt]))
    this.foreign = others
      .filter((one) => !isInternal(one))
      .map(({ name, globs }) => ({ name, wants: globs === null ? () => true : this.#parts.matcher(globs) }))
  }

  async #write(docs: ReadonlyMap<string, Doc>, now: Millis): Promise<boolean> {
    const { store, process } = this.#parts
    let changes = false
    const writes = this.#parts.flows().flatMap((flow) => {
      const doc = docs.get(flow.name)
      const old = doc === undefined ? undefined : writtenIn(doc)
      const globs = flow.globs ?? null
      const differs = JSON.stringify(old?.globs) !== JSON.stringify(globs)
      const other = old !== undefined && old.by !== process && now - old.servedAt < LATELY ? old : undefined
      if (differs && other !== undefined) this.#tell(flow.name, other.by)
      // Of two that differ the newest start counts: the older one says nothing more of it.
      const isOverruled = this.#hasSaid && differs && other !== undefined
      if (isOverruled) this.overruled.add(flow.name)
      else this.overruled.delete(flow.name)
      if (isOverruled) return []
      changes ||= differs
      const written: Written = { globs, by: process, servedAt: now, internal: flow.internal }
      return { kind: KIND, id: flow.name, ifRev: doc?.rev ?? 0, body: Buffer.from(JSON.stringify(written)) }
    })
    if (writes.length === 0) return true
    const reply = await store.writeDocs({ writes, raiseRoutes: changes, audit: undefined })
    if (reply.kind === 'conflict') return false
    this.epoch = reply.routes
    this.#hasSaid = true
    return true
  }

  #tell(flow: string, by: string): void {
    if (this.#told.has(`${flow} ${by}`)) return
    this.#told.add(`${flow} ${by}`)
    this.#parts.conflict(flow, `Process ${by} serves it with other events; the newest start counts.`)
  }
}

/** The engine has always given its own flows these names, and a predicate. */
const NAMES_OF_OURS = /^(sluice\.|every\/)/

function isInternal({ name, globs, internal }: Written & { readonly name: string }): boolean {
  return internal ?? (globs === null && NAMES_OF_OURS.test(name))
}

function writtenIn(doc: Doc): Written {
  return JSON.parse(Buffer.from(doc.body).toString()) as Written
}
