// The writers of the load: transactions of very different lengths, half of them with `pg` and half in plain SQL; some are rolled back.
import { Client } from 'pg'
import { systemClock, type Millis, type Sluice } from 'sluice'
import type { Chance } from '../../kit/chance.ts'
import { schemaNames } from '../../kit/own-schema.ts'
import { saveChanges, SCHEMA } from '../data/versions-table.ts'
import { toEvent } from '../domain/events.ts'
import { COMPONENTS, type Change, type Component } from '../domain/versions.ts'

export interface Published {
  readonly id: string
  readonly type: string
  readonly component: Component
}

/** A transaction that was committed. */
export interface Committed {
  readonly began: Millis
  readonly ended: Millis
  /** In the order in which they were published. */
  readonly events: readonly Published[]
}

export interface WriterOptions {
  readonly store: string
  readonly app: Sluice
  readonly chance: Chance
  /** When the last transaction begins at the latest, on the clock that only goes forward. */
  readonly until: Millis
  /** The longest transaction. */
  readonly longest: Millis
}

const PLAIN = `
  with changed as (
    insert into versions (component, version, details) values ($1, $2, '{"type": "release", "url": ""}')
    returning *
  )
  select STORE.publish(
    'NEW_VERSION',
    details || jsonb_build_object('component', component, 'version', version, 'deprecated', deprecated)
  ) as id
  from changed`

export class Writer {
  readonly committed: Committed[] = []
  /** Events that must not be delivered. */
  readonly rolledBack: string[] = []
  readonly #name: string
  readonly #options: WriterOptions
  readonly #client: Client
  readonly #plain: string
  #made = 0

  constructor(name: string, options: WriterOptions) {
    this.#name = name
    this.#options = options
    const { client, store } = schemaNames(options.store, SCHEMA)
    this.#client = new Client(client)
    this.#plain = PLAIN.replace('STORE', store)
  }

  /** `isFirst` begins with a transaction of the full length. */
  async run(isFirst: boolean): Promise<void> {
    const { chance, until, longest } = this.#options
    await this.#client.connect()
    try {
      for (let n = 0; systemClock.monotonic() < until; n++) {
        const isLong = (isFirst && n === 0) || chance.hits(0.15)
        const length = isFirst && n === 0 ? longest : isLong ? chance.between(1, longest) : chance.between(1, 400)
        await this.#transact(chance.between(1, 6), length)
        await pause(chance.between(0, 300))
      }
    } finally {
      await this.#client.end()
    }
  }

  async #transact(changes: number, length: Millis): Promise<void> {
    const { chance } = this.#options
    const isUndone = chance.hits(0.1)
    const began = systemClock.monotonic()
    const events: Published[] = []
    await this.#client.query('begin')
    for (let n = 0; n < changes; n++) {
      events.push(...(chance.hits(0.5) ? await this.#withSql() : await this.#withApp()))
      await pause(length / changes)
    }
    await this.#client.query(isUndone ? 'rollback' : 'commit')
    if (isUndone) this.rolledBack.push(...events.map(({ id }) => id))
    else this.committed.push({ began, ended: systemClock.monotonic(), events })
  }

  async #withSql(): Promise<readonly Published[]> {
    const [component, version] = this.#next()
    const { rows } = await this.#client.query<{ id: string }>(this.#plain, [component, version])
    return rows.map(({ id }) => ({ id, type: 'NEW_VERSION', component }))
  }

  /** A new version, and half the time a change of it. */
  async #withApp(): Promise<readonly Published[]> {
    const [component, version] = this.#next()
    const found = { component, version, type: 'release', url: '', deprecated: null }
    const events = await this.#save({ news: 'NEW_VERSION', version: found, changed: [] })
    if (this.#options.chance.hits(0.5)) return events
    const changed = { ...found, url: 'https://elsewhere.example' }
    return [...events, ...(await this.#save({ news: 'VERSION_UPDATED', version: changed, changed: ['url'] }))]
  }

  async #save(change: Change): Promise<readonly Published[]> {
    const saved = await saveChanges(this.#client, [change])
    const published = await this.#options.app.publish(saved.map(toEvent), { tx: this.#client })
    return published.map(({ id }) => ({ id, type: change.news, component: change.version.component }))
  }

  #next(): readonly [Component, string] {
    const component = COMPONENTS[this.#made % COMPONENTS.length] ?? 'NEOFORGE'
    return [component, `${this.#name}.${this.#made++}`]
  }
}

function pause(ms: Millis): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}
