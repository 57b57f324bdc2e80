// `atWork` runs an app on a server with a test clock, beside a connection that inspects its schema. `testApp` does not
// accept a server that may lose data; the servers of the tests do.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import type { EventInput } from '../../src/model/event.ts'
import { parseDuration, type Duration } from '../../src/model/duration.ts'
import { attachTest } from '../../src/app/sluice.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { createOutgoing, type TestFetch } from '../../src/testing/outgoing.ts'
import { IdleTracker } from '../../src/testing/idle-tracker.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export interface AtWork {
  readonly app: Sluice
  readonly schema: string
  readonly send: (event: EventInput | readonly EventInput[]) => Promise<unknown>
  readonly advance: (by: Duration) => Promise<void>
  readonly settled: () => Promise<void>
  readonly ask: (sql: string) => Promise<readonly Record<string, unknown>[]>
}

interface Wanted {
  readonly url: string
  readonly now: number
  readonly declare: (app: Sluice) => unknown
  readonly options?: Partial<SluiceOptions>
  /** Receives every request that the app makes. */
  readonly fetch?: TestFetch
}

const CALM = 3_600_000
let made = 0

export async function atWork({ url, now, declare, options, fetch }: Wanted): Promise<AtWork> {
  const schema = `work_${process.pid}_${made++}`
  const clock = new VirtualClock(now)
  const quiet = new IdleTracker(clock)
  const opened = await openPostgresStore({ url, schema, clock, connections: 4, acceptLoss: true })
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  declare(app)
  attachTest(app, {
    clock,
    store: clock.watch(opened),
    minPollInterval: CALM,
    watch: (run, handler) => handler(run as never),
    ...(fetch !== undefined && { outgoing: await createOutgoing(fetch) }),
  })
  await app.start()
  await quiet.settled()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`set search_path = ${schema}`)
  onTestFinished(async () => {
    await quiet.advanceUntil(app.stop())
    await opened.close()
    await client.end()
  })
  return {
    app,
    schema,
    advance: (by) => quiet.advance(parseDuration(by, 'advance')),
    settled: () => quiet.settled(),
    send: async (event) => {
      await app.publish(event)
      await quiet.settled()
    },
    ask: async (sql) => (await client.query<Record<string, unknown>>(sql)).rows,
  }
}
