// `DeadLetterActs` follows what became of the dead letters that an operator retried or dropped together. The ids are in the store, so
// any process can tell.
import { randomUUID } from 'node:crypto'
import type { Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'
import { parseDoc, readDoc, toDocBody } from '../store/documents.ts'

export type DeadLetterAct = 'retry' | 'drop'

/** `done` runs have ended well or were dropped, `deadAgain` ones died once more, and `open` ones wait or run. */
export interface DeadLetterProgress {
  readonly id: string
  readonly act: DeadLetterAct
  readonly by: string
  readonly at: Millis
  readonly count: number
  readonly done: number
  readonly deadAgain: number
  readonly open: number
}

interface ActDoc extends Pick<DeadLetterProgress, 'act' | 'by' | 'at' | 'count'> {
  /** The first dead letters; the others are not followed. */
  readonly ids: readonly string[]
}

const KIND = 'dead-act'
const MAX_ACTS = 50
const MAX_IDS = 10_000
/** How many dead letters one call looks up. */
const LOOKED_UP = 300
const MAX_FOLLOWED = 20

/** What a process knows of an act: the dead letters that were open when it last looked. */
interface Followed {
  readonly doc: ActDoc
  open: readonly string[]
  deadAgain: number
}

export class DeadLetterActs {
  readonly #store: () => Promise<Store>
  readonly #followed = new Map<string, Followed>()

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** `record` stores the act and returns its id. It keeps the last 50. */
  async record(act: DeadLetterAct, by: string, ids: readonly string[]): Promise<string> {
    const store = await this.#store()
    const { docs, now } = await store.readDocs({ kind: KIND, ids: undefined, after: '', n: MAX_ACTS + 1 })
    // Ids begin with the time, so the first documents are the oldest.
    const old = docs.slice(0, Math.max(0, docs.length - MAX_ACTS + 1))
    const id = `${String(now).padStart(15, '0')}-${randomUUID()}`
    const body = toDocBody({ act, by, at: now, count: ids.length, ids: ids.slice(0, MAX_IDS) } satisfies ActDoc)
    await store.writeDocs({
      writes: [
        { kind: KIND, id, ifRev: 0, body },
        ...old.map((doc) => ({ kind: KIND, id: doc.id, ifRev: doc.rev, body: undefined })),
      ],
      raiseRoutes: false,
      audit: undefined,
    })
    return id
  }

  /** `show` looks up a bounded number of open dead letters, so the progress of a large act arrives over several calls. */
  async show(id: string): Promise<DeadLetterProgress | undefined> {
    const store = await this.#store()
    const followed = this.#followed.get(id) ?? (await this.#startToFollow(store, id))
    if (followed === undefined) return undefined
    const { doc } = followed
    const looked = followed.open.slice(0, LOOKED_UP)
    const found = await Promise.all(looked.map((one) => store.get({ kind: 'dead', id: one })))
    const stillOpen: string[] = []
    for (const [n, { item }] of found.entries()) {
      // The act has queued each of them, so a dead one has died again.
      if (item?.state === 'dead') followed.deadAgain++
      else if (item !== undefined) stillOpen.push(looked[n] ?? '')
    }
    // The next call looks at the others first.
    followed.open = [...followed.open.slice(LOOKED_UP), ...stillOpen]
    const { open, deadAgain } = followed
    const { act, by, at, count } = doc
    return { id, act, by, at, count, done: doc.ids.length - open.length - deadAgain, deadAgain, open: open.length }
  }

  async #startToFollow(store: Store, id: string): Promise<Followed | undefined> {
    const { doc } = await readDoc(store, KIND, id)
    if (doc === undefined) return undefined
    const act = parseDoc(doc) as ActDoc
    // An unrouted event becomes no run of its own.
    const runs = act.ids.filter((one) => !one.startsWith('unrouted-'))
    const followed = { doc: act, open: act.act === 'drop' ? [] : runs, deadAgain: 0 }
    for (const oldest of this.#followed.keys()) {
      if (this.#followed.size < MAX_FOLLOWED) break
      this.#followed.delete(oldest)
    }
    this.#followed.set(id, followed)
    return followed
  }
}
