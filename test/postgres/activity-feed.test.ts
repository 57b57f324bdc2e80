// A watcher in one process sees what other processes do, once each. Without a watcher, nothing is written for it.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { createEventToStore } from '../conformance/builders.ts'
import type { FeedEntry, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

let made = 0
const opened: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})

interface Scene {
  readonly here: Store
  readonly there: Store
  /** The number of rows in the activity feed. */
  readonly rows: () => Promise<number>
  readonly client: pg.Client
}

async function scene(url: string): Promise<Scene> {
  const schema = `onlookers_${process.pid}_${made++}`
  const open = async (): Promise<Store> => {
    const store = await openPostgresStore({ url, schema, connections: 2, acceptLoss: true })
    opened.push(store)
    store.listen(() => {})
    return store
  }
  const [here, there] = [await open(), await open()]
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.push({ close: () => client.end() })
  await client.query(`set search_path = "${schema}"`)
  const rows = async (): Promise<number> =>
    Number((await client.query<{ n: string }>('select count(*) as n from shown')).rows[0]?.n)
  return { here, there, rows, client }
}

function eventsOf(from: number, n: number): Parameters<Store['append']>[0] {
  const events = Array.from({ length: n }, (_, at) => createEventToStore(`e${from + at}`, { id: `e${from + at}` }, 0))
  return { routes: 1, events }
}

function named(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, n) => `e${from + n}`)
}

/** Reads everything after that position of the feed, and whether entries were omitted. */
class Reader {
  readonly seen: FeedEntry[] = []
  skipped = false
  readonly #store: Store
  #after = 0

  constructor(store: Store) {
    this.#store = store
  }

  async look(): Promise<readonly string[]> {
    const { changes, next, skipped } = await this.#store.readFeed({ after: this.#after, n: 5_000 })
    this.#after = next
    this.seen.push(...changes)
    this.skipped ||= skipped
    return this.seen.flatMap(({ kind, id }) => (kind === 'event' ? [id] : []))
  }
}

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  test('a watcher sees what another process and its own process do, once each', async () => {
    const { here, there } = await scene(url)
    const [reader, other] = [new Reader(here), new Reader(there)]
    await reader.look()
    // The announcement of a watcher travels beside everything else, and may take a moment.
    let sent = 0
    await expect
      .poll(async () => {
        await Promise.all([there.append(eventsOf(sent++, 1)), other.look()])
        return reader.look()
      })
      .not.toEqual([])
    const [first = ''] = await reader.look()
    // The other process watches too; it must not return what it was shown. Its announcement may take a moment as well.
    let own = 10_000
    await expect
      .poll(async () => {
        await here.append(eventsOf(own++, 1))
        return (await other.look()).filter((id) => Number(id.slice(1)) >= 10_000)
      })
      .not.toEqual([])
    await there.append(eventsOf(20_000, 3))
    const theirs = named(0, sent)
    const known = [...theirs.slice(theirs.indexOf(first)), ...named(10_000, own), ...named(20_000, 20_003)]
    // Two concurrent reads must not both return the entry.
    const look = async (): Promise<readonly string[]> =>
      (await Promise.all([reader.look(), new Reader(here).look()]))[0]
    await expect.poll(async () => (await look()).toSorted()).toEqual(known.toSorted())
    expect(reader.skipped).toBe(false)
  })

  test('after a crash, the server has lost its feed and counts from one again, and the watcher sees what follows', async () => {
    const { here, there, rows, client } = await scene(url)
    const reader = new Reader(here)
    let sent = 0
    const shows = async (): Promise<number> => {
      await Promise.all([there.append(eventsOf(sent++, 1)), reader.look()])
      return rows()
    }
    await expect.poll(shows).toBeGreaterThan(5)
    // A crash empties an unlogged table.
    await client.query('truncate shown restart identity')
    await there.append(eventsOf(10_000, 1))
    await expect.poll(() => reader.look()).toContain('e10000')
    expect(new Set(await reader.look()).size).toBe(reader.seen.filter(({ kind }) => kind === 'event').length)
  })

  test('without a watcher nothing is written; when there is too much, entries are omitted and counted', async () => {
    const { here, there, rows, client } = await scene(url)
    await there.append(eventsOf(0, 50))
    await here.append(eventsOf(50, 50))
    const reader = new Reader(here)
    let sent = 100
    await expect
      .poll(async () => {
        await reader.look()
        await there.append(eventsOf(sent++, 1))
        return rows()
      })
      .toBeGreaterThan(0)
    const { rows: shown } = await client.query<{ changes: string }>('select changes from shown order by n')
    const ids = shown.flatMap(({ changes }) =>
      (JSON.parse(changes) as FeedEntry[]).map(({ id }) => Number(id.slice(1))),
    )
    // No entry is from before the watcher.
    expect(Math.min(...ids)).toBeGreaterThanOrEqual(100)
    await there.append(eventsOf(10_000, 2_000))
    await expect.poll(async () => (await reader.look()) && reader.skipped).toBe(true)
    expect(reader.seen.length).toBeLessThan(1_500)
    // A watcher that is gone leaves rows for a short time: the next watcher deletes them.
    await client.query(`update shown set at = at - interval '2 minutes'`)
    await new Reader(there).look()
    expect(await rows()).toBe(0)
  })
})
