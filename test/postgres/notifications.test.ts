// Tests the connection for hints between processes: there is exactly one in every state of the server, and none after the store is
// closed.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import type { Hint } from '../../src/store/contract/index.ts'
import { systemClock, type Clock } from '../../src/clock.ts'
import { connectListener } from '../../src/store/postgres/connections.ts'
import { Notifications } from '../../src/store/postgres/notifications.ts'
import { silentProxy } from './silent-proxy.ts'

const opened: { close(): Promise<unknown> }[] = []
let made = 0

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})

/** A clock of real time in which a second takes forty milliseconds. */
const hurried: Clock = { ...systemClock, after: (delay, call) => systemClock.after(delay / 25, call) }

interface Scene {
  readonly client: pg.Client
  /** The address with an application name that identifies its sessions. */
  readonly address: string
  readonly sessions: () => Promise<number>
  readonly hints: (connect: () => Promise<pg.Client>, clock?: Clock) => Notifications
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
    hints(connect, clock = hurried) {
      const hints = new Notifications({ channel: name, connect, clock })
      opened.push(hints)
      return hints
    },
  }
}

describe.each(inject('postgresServers'))('$name', ({ tcpUrl }) => {
  test('if LISTEN is not allowed, no session is left behind, however often it is tried', async () => {
    const { address, sessions, hints } = await scene(tcpUrl)
    let connected = 0
    const ours = hints(async () => {
      const client = await connectListener(address)
      connected++
      await client.query('begin')
      // From here on, the server rejects everything, like a standby.
      await client.query('no statement').catch(() => {})
      return client
    })
    ours.listen(() => {})
    await expect.poll(() => connected).toBeGreaterThan(5)
    await ours.close()
    await expect.poll(sessions).toBe(0)
  })

  test('a connection that no longer responds is replaced, and can be closed', async () => {
    const { address, hints } = await scene(tcpUrl)
    const proxy = await silentProxy(address)
    opened.push(proxy)
    const [ours, theirs] = [hints(() => connectListener(proxy.url)), hints(() => connectListener(address))]
    const heard = { here: new Set<string>(), there: new Set<string>() }
    ours.listen((hint) => heard.here.add(flowOf(hint)))
    theirs.listen((hint) => heard.there.add(flowOf(hint)))
    const told = async (flow: string): Promise<void> => {
      await expect
        .poll(() => {
          for (const each of [ours, theirs]) each.send([{ kind: 'due', flow }])
          return heard.here.has(flow) && heard.there.has(flow)
        })
        .toBe(true)
    }
    await told('before')
    proxy.fallSilent()
    await told('after')
    proxy.fallSilent()
    await ours.close()
  })

  test('notifications that wait while the server accepts nothing are bounded', async () => {
    const { address, client, hints } = await scene(tcpUrl)
    let connection: pg.Client | undefined
    const ours = hints(async () => (connection = await connectListener(address)), systemClock)
    const theirs = hints(() => connectListener(address))
    const heard = new Set<string>()
    ours.listen(() => {})
    theirs.listen((hint) => heard.add(flowOf(hint)))
    const told = async (flow: string): Promise<void> => {
      await expect
        .poll(() => {
          ours.send([{ kind: 'due', flow }])
          return heard.has(flow)
        })
        .toBe(true)
    }
    await told('before')
    await client.query('select pg_advisory_lock($1)', [process.pid])
    const held = connection?.query('select pg_advisory_lock($1)', [process.pid])
    // One message is being sent and delays the others.
    ours.send([{ kind: 'due', flow: 'first' }])
    await expect.poll(() => heldUp(connection)).toBe(1)
    for (let n = 0; n < 30_000; n++) ours.send([{ kind: 'due', flow: `meanwhile ${n}` }])
    await client.query('select pg_advisory_unlock($1)', [process.pid])
    await held
    await told('after')
    expect(heard.size).toBeGreaterThan(5_000)
    expect(heard.size).toBeLessThan(15_000)
  })
})

function flowOf(hint: Hint): string {
  return hint.kind === 'due' ? hint.flow : ''
}

/** Counts the statements that wait behind the running one. */
function heldUp(client: pg.Client | undefined): number {
  // oxlint-disable-next-line no-underscore-dangle -- nothing else says it
  return (client as unknown as { readonly _queryQueue: readonly unknown[] })._queryQueue.length
}
