// An app on a server under a clock of the test's own, and a stranger who looks at its schema. As `testApp`, which takes no
// server that may forget: those of the tests do.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import type { EventInput } from '../../src/model/event-input.ts'
import { millis, type Duration } from '../../src/model/duration.ts'
import { underTest } from '../../src/sluice.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { Quiet } from '../../src/testing/quiet.ts'
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
}

const CALM = 3_600_000
let made = 0

export async function atWork({ url, now, declare }: Wanted): Promise<AtWork> {
  const schema = `work_${process.pid}_${made++}`
  const clock = new VirtualClock(now)
  const quiet = new Quiet()
  const opened = await openPostgresStore({ url, schema, clock, connections: 4, acceptLoss: true })
  const app = new Sluice({ store: 'memory:', log: false })
  declare(app)
  underTest(app, { clock, store: quiet.watched(opened), calm: CALM, watch: (run, handler) => handler(run as never) })
  await app.start()
  await quiet.settled()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`set search_path = ${schema}`)
  onTestFinished(async () => {
    await quiet.awaited(clock, app.stop())
    await opened.close()
    await client.end()
  })
  return {
    app,
    schema,
    advance: (by) => quiet.pass(clock, millis(by, 'advance')),
    settled: () => quiet.settled(),
    send: async (event) => {
      await app.publish(event)
      await quiet.settled()
    },
    ask: async (sql) => (await client.query<Record<string, unknown>>(sql)).rows,
  }
}
