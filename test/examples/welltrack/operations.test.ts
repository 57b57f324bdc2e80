// What an operator of WellTrack does on the command line, what is kept for how long, and what the files show of a person.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from 'sluice'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../../examples/kit/database.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { DATABASE } from '../../../examples/welltrack/data/schema.ts'
import { welltrack } from '../../../examples/welltrack/example.ts'
import {
  connectGarmin,
  metricsOf,
  SHORT_TIMES,
  TRUE_TIMES,
  type World,
} from '../../../examples/welltrack/scenarios/world.ts'
import { CLIENT_ID } from '../../../examples/welltrack/stand-in/garmin.ts'
import { dailies } from '../../../examples/welltrack/stand-in/payloads.ts'
import { build } from '../../../examples/welltrack/welltrack.ts'

const root = new URL('../../../', import.meta.url)
const SLUICE = fileURLToPath(new URL('dist/cli/main.js', root))
const CONFIG = fileURLToPath(new URL('examples/welltrack/sluice.config.ts', root))
const README = readFileSync(new URL('examples/welltrack/README.md', root), 'utf8')

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-welltrack-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('on the command line', () => {
  // As in production: there is neither a service for notifications nor Sentry.
  const env = { ...SHORT_TIMES, SENTRY_DSN: '' }
  let store: string

  const sluice = (...args: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      // Nothing listens on this port: the command opens the store itself.
      const variables = { ...process.env, ...env, SLUICE_STORE: store, PORT: '9', NODE_NO_WARNINGS: '1' }
      execFile(process.execPath, [SLUICE, ...args, `--config=${CONFIG}`], { env: variables }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stderr}`)),
      )
    })

  beforeAll(async () => {
    store = `sqlite:${join(folder, 'operated.db')}`
    const options = { log: false, admin: { open: 'loopback' } } as const
    const app = build({ store, env, clock: systemClock, options, url: () => '', watch: (client) => client })
    await app.start()
    await app.admin.flows.pause('garmin-metrics', { reason: 'maintenance', by: 'an operator' })
    const { secret } = await app.admin.keys.create({ name: 'the back end', role: 'operate' })
    const post = async (path: string, headers: Readonly<Record<string, string>>, body: object): Promise<number> => {
      const all = { 'content-type': 'application/json', ...headers }
      const request = new Request(`http://app.example${path}`, {
        method: 'POST',
        headers: all,
        body: JSON.stringify(body),
      })
      return (await app.fetch(request)).status
    }
    const person = { provider: 'garmin', externalId: 'garmin-ada', profileId: 'ada' }
    const tokens = { access: 'the access token', refresh: 'the refresh token', expiresAt: 1 }
    expect(await post('/connections', { authorization: `Bearer ${secret}` }, { ...person, tokens })).toBe(201)
    const userId = 'garmin-ada'
    const items = [
      { userId, ...dailies() },
      { userId, summaryId: 'malformed', calendarDate: 'of restless nights' },
    ]
    expect(await post('/webhooks/garmin/dailies', { 'garmin-client-id': CLIENT_ID }, { dailies: items })).toBe(200)
    await app.stop()
  })

  it('`work --once` processes what has waited, as cron does it', async () => {
    const tables = openDatabase(store, DATABASE)
    expect(await tables.rows('select * from wt_health_metrics')).toEqual([])
    await sluice('flows', 'resume', 'garmin-metrics')
    await sluice('work', '--once')
    const rows = await tables.rows('select metric_type, value_num from wt_health_metrics order by 1')
    expect(rows.map((row) => [row['metric_type'], row['value_num']])).toEqual([
      ['calories', 512],
      ['distance', 6_320.5],
      ['resting_hr', 54],
      ['steps', 8_412],
    ])
  })

  it('`dead list`, `show`, `retry` and `export` find the malformed item, with its reason and its payload', async () => {
    const { items } = JSON.parse(await sluice('dead', 'list', '--json')) as {
      items: readonly { id: string; flow: string; reason: string }[]
    }
    expect(items).toMatchObject([{ flow: 'garmin-metrics', reason: expect.stringContaining('not a calendarDate') }])
    const id = items[0]?.id ?? ''
    expect(await sluice('dead', 'show', id)).toContain('not a calendarDate')
    await sluice('dead', 'retry', id)
    await sluice('work', '--once')
    expect(JSON.parse(await sluice('dead', 'list', '--json'))).toMatchObject({ items: [{ id }] })

    const archive = join(folder, 'dead.jsonl')
    await sluice('dead', 'export', `--out=${archive}`)
    const [line = '', ...rest] = readFileSync(archive, 'utf8').trim().split('\n')
    expect(rest).toEqual([])
    const bodies = [...line.matchAll(/"([\w+/=]{40,})"/g)].map(([, text = '']) =>
      Buffer.from(text, 'base64').toString(),
    )
    expect(bodies.some((body) => body.includes('of restless nights'))).toBe(true)
  })

  it('the inspection query of the README finds the same on the view `work`', () => {
    const sql = /```sql\n(.*?)```/s.exec(README)?.[1] ?? ''
    const database = new DatabaseSync(store.replace('sqlite:', ''), { readOnly: true })
    const rows = database.prepare(sql).all()
    database.close()
    expect(rows).toMatchObject([
      { source: 'garmin', event_type: 'dailies', tenant: 'garmin-ada', attempts: 1, received_at: expect.any(String) },
    ])
  })

  it('no file shows a payload, a reason that quotes it, or a token', () => {
    const files = readdirSync(folder).filter((file) => file.startsWith('operated.db'))
    expect(files.length).toBeGreaterThan(1)
    const bytes = files.map((file) => readFileSync(join(folder, file)).toString('latin1')).join('')
    expect(bytes).toContain('wt_health_metrics')
    for (const secret of [
      'restingHeartRateInBeatsPerMinute',
      'of restless nights',
      'the access token',
      'the refresh token',
    ])
      expect(bytes.includes(secret), secret).toBe(false)
  })
})

/** The events of Garmin, the dead letters, and the metrics, an hour later. */
async function countKept(stage: Stage<World>): Promise<readonly number[]> {
  await stage.sleep(3_600_000)
  const events = await stage.app.admin.events.list({ source: 'garmin' })
  const deadLetters = await stage.app.admin.deadLetters.list({ flow: 'garmin-metrics' })
  return [events.items.length, deadLetters.items.length, (await metricsOf(stage, 'ada')).length]
}

describe('cleanup', () => {
  const DAY = 86_400_000
  const began = Date.UTC(2026, 10, 18, 12)

  async function after<T>(days: number, act: (stage: Stage<World>) => Promise<T>): Promise<T> {
    const store = `sqlite:${join(folder, 'kept.db')}`
    const stage = await Stage.openVirtual({ ...welltrack, env: TRUE_TIMES }, { store }, began + days * DAY)
    try {
      const results: T[] = []
      await stage.play(async () => void results.push(await act(stage)))
      expect(stage.checks).toEqual([])
      return results[0] as T
    } finally {
      await stage.close()
    }
  }

  it('removes completed events after 90 days and dead letters after a year, but no metric', async () => {
    await after(0, async (stage) => {
      await connectGarmin(stage, 'ada')
      const userId = 'garmin-ada'
      const malformed = { userId, summaryId: 'malformed' }
      await stage.world.garmin.push(stage.send, 'dailies', [{ userId, ...dailies() }, malformed])
      await stage.idle()
    })
    expect(await after(89, countKept)).toEqual([2, 1, 4])
    expect(await after(91, countKept)).toEqual([1, 1, 4])
    expect(await after(364, countKept)).toEqual([1, 1, 4])
    expect(await after(367, countKept)).toEqual([0, 0, 4])
  })
})
