// The connection by which processes tell each other what is due: there is one of it, whatever the server does, and none when the
// store is closed.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { systemClock, type Clock } from '../../src/clock.ts'
import { listener } from '../../src/store/postgres/connections.ts'
import { Hints } from '../../src/store/postgres/hints.ts'

const opened: { close(): Promise<unknown> }[] = []
let made = 0

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})

/** Real time, but a second of it takes ten milliseconds. */
const hurried: Clock = { ...systemClock, after: (delay, call) => systemClock.after(delay / 100, call) }

interface Scene {
  readonly client: pg.Client
  /** The address, under a name by which its sessions are known. */
  readonly address: string
  readonly sessions: () => Promise<number>
  readonly hints: (connect: () => Promise<pg.Client>) => Hints
}

async function scene(url: string): Promise<Scene> {
  const name = `hints_${process.pid}_${made++}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.push({ close: () => client.end() })
  const address = new URL(url)
  address.searchParams.set('application_name', name)
  const counted = 'select count(*)::int as n from pg_stat_activity where application_name = $1'
  return {
    client,
    address: address.href,
    sessions: async () => (await client.query<{ n: number }>(counted, [name])).rows[0]?.n ?? 0,
    hints(connect) {
      const hints = new Hints({ channel: name, connect, clock: hurried })
      opened.push(hints)
      return hints
    },
  }
}

describe.each(inject('postgresServers'))('$name', ({ tcpUrl }) => {
  test('where nobody may listen no session is left behind, however often it is tried', async () => {
    const { address, sessions, hints } = await scene(tcpUrl)
    let connected = 0
    const ours = hints(async () => {
      const client = await listener(address)
      connected++
      await client.query('begin')
      // Like a standby: from here on it refuses everything.
      await client.query('no statement').catch(() => {})
      return client
    })
    ours.hear(() => {})
    await expect.poll(() => connected).toBeGreaterThan(5)
    await ours.close()
    await expect.poll(sessions).toBe(0)
  })
})
