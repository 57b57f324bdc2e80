// `atWork` runs an app on a server with a test clock, beside a connection that inspects its schema.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import type { EventInput } from '../../src/model/event.ts'
import type { Duration } from '../../src/model/duration.ts'
import { testApp } from '../../src/testing/index.ts'
import type { TestFetch } from '../../src/testing/outgoing.ts'

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

let made = 0

export async function atWork({ url, now, declare, options, fetch }: Wanted): Promise<AtWork> {
  const schema = `work_${process.pid}_${made++}`
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  declare(app)
  const store = `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`
  const t = await testApp(app, { store, now, ...(fetch !== undefined && { fetch }) })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`set search_path = ${schema}`)
  onTestFinished(async () => {
    await t.stop()
    await client.end()
  })
  return {
    app,
    schema,
    advance: (by) => t.advance(by),
    settled: () => t.settled(),
    send: (event) => t.send(event),
    ask: async (sql) => (await client.query<Record<string, unknown>>(sql)).rows,
  }
}
