// Who looks on in one process sees what others do, once each; while nobody looks on, nothing is written for it.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { newEvent } from '../../src/store/conformance/vocabulary.ts'
import type { Change, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

let made = 0
const opened: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})

interface Scene {
  readonly here: Store
  readonly there: Store
  /** How many rows there are for onlookers. */
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
  const events = Array.from({ length: n }, (_, at) => newEvent(`e${from + at}`, { id: `e${from + at}` }, 0))
  return { routes: 1, events }
}

function named(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, n) => `e${from + n}`)
}

/** All that the feed has from there on, and whether some was left out. */
class Reader {
  readonly seen: Change[] = []
  skipped = false
  readonly #store: Store
  #after = 0

  constructor(store: Store) {
    this.#store = store
  }

  async look(): Promise<readonly string[]> {
    const { changes, next, skipped } = await this.#store.feed({ after: this.#after, n: 5_000 })
    this.#after = next
    this.seen.push(...changes)
    this.skipped ||= skipped
    return this.seen.flatMap(({ kind, id }) => (kind === 'event' ? [id] : []))
  }
}

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  test('what another process does is seen here, once, and what this one does too', async () => {
    const { here, there } = await scene(url)
    const [reader, other] = [new Reader(here), new Reader(there)]
    await reader.look()
    // That somebody looks on is told beside everything else, and may take a moment.
    let sent = 0
    await expect
      .poll(
        async () => {
          await Promise.all([there.append(eventsOf(sent++, 1)), other.look()])
          return reader.look()
        },
        { timeout: 10_000 },
      )
      .not.toEqual([])
    const [first = ''] = await reader.look()
    // The other looks on as well: what is shown to it must not come back.
    let own = 10_000
    await expect
      .poll(
        async () => {
          await here.append(eventsOf(own++, 1))
          return other.look()
        },
        { timeout: 10_000 },
      )
      .toContain('e10000')
    await there.append(eventsOf(20_000, 3))
    const theirs = named(0, sent)
    const known = [...theirs.slice(theirs.indexOf(first)), ...named(10_000, own), ...named(20_000, 20_003)]
    // Two who look at the same moment must not both bring it in.
    const look = async (): Promise<readonly string[]> =>
      (await Promise.all([reader.look(), new Reader(here).look()]))[0]
    await expect.poll(async () => (await look()).toSorted(), { timeout: 10_000 }).toEqual(known.toSorted())
    expect(reader.skipped).toBe(false)
  })

  test('a server that crashed has lost what was shown, and counts from one again: what comes after is seen', async () => {
    const { here, there, rows, client } = await scene(url)
    const reader = new Reader(here)
    let sent = 0
    const shows = async (): Promise<number> => {
      await Promise.all([there.append(eventsOf(sent++, 1)), reader.look()])
      return rows()
    }
    await expect.poll(shows, { timeout: 10_000 }).toBeGreaterThan(5)
    // What a crash does with a table that is in no log.
    await client.query('truncate shown restart identity')
    await there.append(eventsOf(10_000, 1))
    await expect.poll(() => reader.look(), { timeout: 5_000 }).toContain('e10000')
    expect(new Set(await reader.look()).size).toBe(reader.seen.filter(({ kind }) => kind === 'event').length)
  })

  test('while nobody looks on nothing is written; of too much some is left out, and said to be', async () => {
    const { here, there, rows, client } = await scene(url)
    await there.append(eventsOf(0, 50))
    await here.append(eventsOf(50, 50))
    const reader = new Reader(here)
    let sent = 100
    await expect
      .poll(
        async () => {
          await reader.look()
          await there.append(eventsOf(sent++, 1))
          return rows()
        },
        { timeout: 10_000 },
      )
      .toBeGreaterThan(0)
    const { rows: shown } = await client.query<{ changes: string }>('select changes from shown order by n')
    const ids = shown.flatMap(({ changes }) => (JSON.parse(changes) as Change[]).map(({ id }) => Number(id.slice(1))))
    // None of those that came before anybody looked on.
    expect(Math.min(...ids)).toBeGreaterThanOrEqual(100)
    await there.append(eventsOf(10_000, 2_000))
    await expect.poll(async () => (await reader.look()) && reader.skipped, { timeout: 10_000 }).toBe(true)
    expect(reader.seen.length).toBeLessThan(1_500)
    // Who is gone leaves nothing behind for long: the next to look on tidies up.
    await client.query(`update shown set at = at - interval '2 minutes'`)
    await new Reader(there).look()
    expect(await rows()).toBe(0)
  })
})
