// `FlowRegistry` keeps the flows of all processes in the store under one epoch (L18), so that each process routes events to all of them.
import type { Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { createMatcher, isOperatorNews } from './globs.ts'
import { createContentFilter } from './where.ts'
import type { Flow } from '../model/flow.ts'
import type { Doc, Reply, Store } from '../store/contract/index.ts'
import { changeDoc, parseDoc, toDocBody, type DocDecision } from '../store/documents.ts'

const KIND = 'flow'
const PAGE = 500
const WRITE_TRIES = 10
/** No event is routed to a flow that no process has served for this long. Its waiting events stay and raise an alert. */
const FORGET_AFTER: Millis = 7 * 86_400_000
/** How often a process writes that it still serves its flows. */
export const ANNOUNCE_EVERY: Millis = 20_000
const RECENTLY: Millis = 3 * ANNOUNCE_EVERY
/** A process that only declares its flows writes them again after this time. */
const DECLARED_FOR: Millis = 86_400_000

interface FlowDoc {
  /** Null for a predicate, which only its own process can call. */
  readonly globs: readonly string[] | null
  /** The filter over the content; missing without one. */
  readonly where?: object
  /** The process that last served the flow, or else declared it. */
  readonly by: string
  /** When a process last served the flow; 0 if none has. */
  readonly servedAt: Millis
  /** When a process that does not serve the flow last declared it. */
  readonly declaredAt?: Millis
  /** Whether the flow is internal: it takes no events of other publishers. Records of earlier versions lack this. */
  readonly internal?: boolean
  /** Whether the flow is a delivery: it takes received events only if a glob names their source. */
  readonly delivers?: boolean
}

interface ForeignFlow {
  readonly name: string
  wants(event: FlowEvent): boolean
}

export interface FlowRegistryDependencies {
  readonly store: Store
  readonly process: string
  readonly flows: () => readonly Flow[]
  readonly onConflict: (flow: string, text: string) => void
  /** Called before a call to the store; returns a function that takes the reply. */
  readonly startCall: () => (reply: Reply) => void
}

export class FlowRegistry {
  readonly #deps: FlowRegistryDependencies
  /** The flows that other processes serve or recently served, and that get the events this process publishes. */
  foreign: readonly ForeignFlow[] = []
  /** The flows of other processes, including internal ones. */
  #others: ReadonlyMap<string, FlowDoc> = new Map()
  /** All flows as last written, including those of this process. */
  #written: ReadonlyMap<string, FlowDoc> = new Map()
  /** The store's time of that read. */
  #readAt: Millis = 0
  epoch = 0
  /** Whether this process has declared its flows; a declaration seen after that is newer. */
  #hasServed = false
  /** The flows of this process that another process later declared differently. This process does not route to them. */
  readonly overruled: Set<string> = new Set()
  readonly #reported = new Set<string>()

  constructor(parts: FlowRegistryDependencies) {
    this.#deps = parts
  }

  /** Writes that this process serves its flows. The epoch rises if this changes the routes. */
  announceServed(): Promise<void> {
    return this.#declareUntilWritten(true)
  }

  /** `declare` writes the flows of a process that has not started. Others route events to them, but they do not count as served. */
  declare(): Promise<void> {
    return this.#declareUntilWritten(false)
  }

  async #declareUntilWritten(serves: boolean): Promise<void> {
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      const { docs, now } = await this.#read()
      if (await this.#write(docs, now, serves)) return
    }
  }

  /** The flows that other processes serve or recently served. */
  get servedElsewhere(): readonly string[] {
    return [...this.#others.keys()]
  }

  /** `servedAt` returns when another process last wrote that it serves the flow. */
  servedAt(flow: string): Millis | undefined {
    return this.#others.get(flow)?.servedAt || undefined
  }

  /** `isServed` returns whether another process served the flow within the last minute, according to the last `refresh`. */
  isServed(flow: string): boolean {
    const written = this.#written.get(flow)
    if (written === undefined || this.#readAt - written.servedAt >= RECENTLY) return false
    // Processes of one configuration may share a name, so the entry belongs to this one only if this one has ever served.
    return !this.#hasServed || written.by !== this.#deps.process
  }

  /** Stops routing events to the flow. `running` means that a process serves the flow and would declare it again. */
  async retire(name: string, by: string): Promise<'ok' | 'missing' | 'running'> {
    const { store, flows } = this.#deps
    if (flows().some((flow) => flow.name === name)) return 'running'
    const audit = { who: by, what: `retire flow ${name}` }
    const change = { kind: KIND, id: name, title: `flow ${name}`, raiseRoutes: true, audit }
    const result = await changeDoc(store, change, (doc, now): DocDecision<'ok' | 'missing' | 'running'> => {
      if (doc === undefined) return { result: 'missing' }
      return now - parseFlowDoc(doc).servedAt < RECENTLY ? { result: 'running' } : { body: undefined, result: 'ok' }
    })
    await this.#read()
    return result
  }

  /** Called when another process has changed the routes. */
  async refresh(): Promise<void> {
    await this.#read()
  }

  async #read(): Promise<{ readonly docs: ReadonlyMap<string, Doc>; readonly now: Millis }> {
    const { store } = this.#deps
    const docs = new Map<string, Doc>()
    let after = ''
    for (;;) {
      const heard = this.#deps.startCall()
      const reply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      heard(reply)
      for (const doc of reply.docs) docs.set(doc.id, doc)
      if (reply.next === undefined) {
        this.#update(docs, reply.now)
        this.epoch = reply.routes
        return { docs, now: reply.now }
      }
      after = reply.next
    }
  }

  #update(docs: ReadonlyMap<string, Doc>, now: Millis): void {
    const own = new Set(this.#deps.flows().map((flow) => flow.name))
    const all = [...docs.values()].map((doc) => ({ name: doc.id, ...parseFlowDoc(doc) }))
    const others = all.filter((one) => !own.has(one.name) && now - lastSeen(one) <= FORGET_AFTER)
    this.#readAt = now
    this.#written = new Map(all.map((one) => [one.name, one]))
    this.#others = new Map(others.map((one) => [one.name, one]))
    this.foreign = others
      .filter((one) => !isInternal(one))
      .map((one) => ({ name: one.name, wants: this.#createForeignMatcher(one) }))
  }

  #createForeignMatcher(flow: FlowDoc): ForeignFlow['wants'] {
    const [wants, hasContent] = [this.#createNameMatcher(flow), createForeignFilter(flow.where)]
    return hasContent === undefined ? wants : (event) => wants(event) && hasContent(event)
  }

  /** Other processes cannot call a predicate, so they route every possible event to it. */
  #createNameMatcher({ globs, delivers = false }: FlowDoc): ForeignFlow['wants'] {
    if (globs === null) return delivers ? (event) => !event.received && !isOperatorNews(event) : () => true
    return createMatcher(globs, 'on', delivers ? 'published' : 'every-source')
  }

  async #write(docs: ReadonlyMap<string, Doc>, now: Millis, serves: boolean): Promise<boolean> {
    const { store, process } = this.#deps
    let changes = false
    const writes = this.#deps.flows().flatMap((flow) => {
      const doc = docs.get(flow.name)
      const old = doc === undefined ? undefined : parseFlowDoc(doc)
      const globs = flow.globs ?? null
      const { isInternal: internal, isDelivery, where } = flow
      const differs =
        old === undefined ||
        JSON.stringify([old.globs, old.where]) !== JSON.stringify([globs, where]) ||
        (old.delivers ?? false) !== isDelivery
      const other = old !== undefined && old.by !== process && now - old.servedAt < RECENTLY ? old : undefined
      if (differs && other !== undefined) this.#reportConflict(flow.name, other.by)
      // If two declarations differ, the newest start wins. Older processes and ones that have not started write nothing.
      const isOverruled = (this.#hasServed || !serves) && differs && other !== undefined
      if (isOverruled) this.overruled.add(flow.name)
      else this.overruled.delete(flow.name)
      if (isOverruled || (!serves && !differs && old !== undefined && now - lastSeen(old) < DECLARED_FOR)) return []
      changes ||= differs
      const known = { globs, ...(where !== undefined && { where }), internal, delivers: isDelivery }
      const { by = process, servedAt = 0 } = old ?? {}
      const written: FlowDoc = serves
        ? { ...known, by: process, servedAt: now }
        : { ...known, by, servedAt, declaredAt: now }
      return { kind: KIND, id: flow.name, ifRev: doc?.rev ?? 0, body: toDocBody(written) }
    })
    if (writes.length === 0) return true
    const reply = await store.writeDocs({ writes, raiseRoutes: changes, audit: undefined })
    if (reply.kind === 'conflict') return false
    this.epoch = reply.routes
    this.#hasServed ||= serves
    return true
  }

  #reportConflict(flow: string, by: string): void {
    if (this.#reported.has(`${flow} ${by}`)) return
    this.#reported.add(`${flow} ${by}`)
    this.#deps.onConflict(flow, `Process ${by} serves it with a different "on" or "where". The newest start wins.`)
  }
}

/** A filter that this release does not know lets every event through: the process that serves the flow applies it. */
function createForeignFilter(where: object | undefined): ForeignFlow['wants'] | undefined {
  if (where === undefined) return undefined
  try {
    return createContentFilter(where, 'where')
  } catch {
    return undefined
  }
}

/** Internal flows have always had these names and a predicate. */
const INTERNAL_NAMES = /^(sluice\.|every\/)/

function isInternal({ name, globs, internal }: FlowDoc & { readonly name: string }): boolean {
  return internal ?? (globs === null && INTERNAL_NAMES.test(name))
}

function lastSeen({ servedAt, declaredAt = 0 }: FlowDoc): Millis {
  return Math.max(servedAt, declaredAt)
}

function parseFlowDoc(doc: Doc): FlowDoc {
  return parseDoc(doc) as FlowDoc
}
