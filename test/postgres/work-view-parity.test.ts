// The view `work` shows the same on a server as in a file, after each step of random histories. It counts as many waiting,
// running, failed and dead events as the app itself.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { randomFrom } from '../../bench/workload.ts'
import { Sluice } from '../../src/index.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { ownFolder } from '../temporary-folder.ts'
import { atWork } from './running-app.ts'
import { declare, stepsOf } from './work-view-history.ts'

const START = Date.UTC(2026, 0, 10, 12)
const STEPS = 60
const SEED = Number(process.env['SEED'] ?? 20_261_116)
const rowsWith = (
  hex: string,
): string => `select event, source, event_type, flow, key, tenant, status, received_at, processed_at, latency_seconds, attempts,
  last_error, next_retry_at, lane, subject, case when payload_row is null then 'gone' end,
  (select ${hex} from events where seq = payload_row) as payload from work order by event, coalesce(lane, ''), flow`

const IN_FILE = rowsWith('lower(hex(body))')
const ON_SERVER = rowsWith(`encode(body, 'hex')`)

type Rows = readonly (readonly unknown[])[]

async function onFile(): Promise<{ readonly t: TestApp; readonly rows: () => Rows }> {
  const file = join(ownFolder(), 'store.db')
  const app = new Sluice({ store: 'memory:', log: false })
  declare(app)
  const t = await testApp(app, { store: `sqlite:${file}`, now: START })
  onTestFinished(() => t.stop())
  const rows = (): Rows => {
    const db = new DatabaseSync(file, { readOnly: true })
    const found = db.prepare(IN_FILE).all().map(Object.values)
    db.close()
    return found
  }
  return { t, rows }
}

/** The date format of SQLite. */
const written = (value: unknown): unknown =>
  value instanceof Date ? value.toISOString().replace('T', ' ').replace('Z', '') : value

describe.each(inject('postgresServers'))('the view work on $name', ({ url }) => {
  it.each([1, 2])('shows the same as in a file, history %i', async (n) => {
    const file = await onFile()
    const server = await atWork({ url, now: START, declare })
    const steps = stepsOf(randomFrom(SEED + n), STEPS)
    const seen = new Set<unknown>()
    for (const step of steps) {
      await step(file.t)
      await file.t.settled()
      await step(server)
      await server.settled()
      const rows = (await server.ask(ON_SERVER)).map((row) => Object.values(row).map(written))
      expect(rows).toEqual(file.rows())
      for (const row of rows) seen.add(row[6])
      await asTheAppCounts(server)
    }
    for (const word of ['pending', 'failed', 'completed', 'dead_letter', 'unrouted']) expect(seen).toContain(word)
  })
})

async function asTheAppCounts({ app, ask }: Awaited<ReturnType<typeof atWork>>): Promise<void> {
  const counts = await ask('select status, count(*)::int as n from work group by status')
  const byView = Object.fromEntries(counts.map(({ status, n }) => [status, n])) as Readonly<Record<string, number>>
  const lanes = (await app.admin.lanes.list({}, '', 1_000)).items
  const { items } = await app.admin.deadLetters.list({}, '', 1_000)
  const eventsIn = (state: string): number =>
    items.reduce(
      (sum, deadLetter) =>
        sum + (deadLetter.kind === 'run' && deadLetter.state === state ? deadLetter.events.length : 0),
      0,
    )
  const inRuns = (state: string): number =>
    lanes.reduce((sum, { run }) => sum + (run?.state === state && !run.isDeadLetter ? run.events : 0), 0)
  expect(byView['failed'] ?? 0).toBe(inRuns('retrying'))
  const waiting = lanes.reduce((sum, lane) => sum + lane.waiting, 0)
  expect(byView['pending'] ?? 0).toBe(waiting + inRuns('snoozed') + eventsIn('queued'))
  expect(byView['dead_letter'] ?? 0).toBe(eventsIn('dead'))
}
