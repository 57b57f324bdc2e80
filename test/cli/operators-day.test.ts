// A day of an operator who runs the app of the seed with the command line alone: an alert is raised, found and explained; the fault is
// fixed; the dead letters are counted and retried; the alert clears; the audit log has it all, and reveals tampering.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { alerts, Sluice } from '../../src/index.ts'
import { testApp } from '../../src/testing/index.ts'
import { folderWith, Program, run, serve, until, type Ran } from './commands-rig.ts'

const START = Date.UTC(2026, 0, 1)
const FLOW = 'health-metrics'

/** An operator with a key. Her folder has no configuration by default, so that the server answers every command. */
class Desk {
  readonly folder: string
  readonly url: string
  #key: Readonly<Record<string, string>> = {}

  constructor(url: string, folder = folderWith({})) {
    this.url = url
    this.folder = folder
  }

  get env(): Readonly<Record<string, string>> {
    return { SLUICE_URL: this.url, ...this.#key }
  }

  async signIn(name: string): Promise<void> {
    this.#key = { SLUICE_KEY: (await this.says('keys', 'create', name, '--role=operate')).trim() }
  }

  run(...args: readonly string[]): Promise<Ran> {
    return run(this.folder, args, { env: this.env })
  }

  /** The output of a command that must succeed. */
  async says(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args)
    expect([args, code, code === 0 ? '' : stderr]).toEqual([args, 0, ''])
    return stdout
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.says(...args, '--json')) as T
  }

  /** The first words of each line of a table, without its heading. */
  async rows(words: number, ...args: readonly string[]): Promise<readonly (readonly string[])[]> {
    const [, ...lines] = (await this.says(...args)).trimEnd().split('\n')
    return lines.map((line) => line.split(/ +/).slice(0, words))
  }
}

describe.each(['memory:', 'sqlite::memory:'])('a day of an operator on %s', (store) => {
  test('everything from the alert to its end can be done with the command line alone', async () => {
    const downstream = { isUp: true, stored: 0 }
    const app = new Sluice({ store: 'memory:', log: false, admin: { open: 'loopback' } })
    app.flow(FLOW, {
      on: 'garmin/*',
      key: (event) => event.subject,
      retry: ['1s', '5s'],
      run: ({ events }) => {
        if (!downstream.isUp) throw new Error('The database refuses connections.')
        downstream.stored += events.length
      },
    })
    app.alert('dead-letters', { when: alerts.deadLetters({ above: 10 }), for: '1m' })
    app.alert('failures', { when: alerts.failureRate({ above: 0.1, window: '24h' }) })
    const t = await testApp(app, { store, now: START })
    onTestFinished(() => t.stop())
    const { url } = await app.listen({ port: 0 })
    const desk = new Desk(url)
    const arrive = (from: number, n: number): Promise<unknown> =>
      t.send(Array.from({ length: n }, (_, at) => ({ source: 'garmin', type: 'sleep', subject: `user-${from + at}` })))

    await desk.signIn('ada')
    const stranger = new Desk(url)
    expect((await stranger.run('alerts')).code).toBe(4)

    // In the morning, all is well.
    await arrive(0, 30)
    await t.advance('1h')
    expect(downstream.stored).toBe(30)
    expect(await desk.says('stats')).toMatch(/^all +30 +\S+ +30 +0 +0 +0\.0 %/m)
    expect(await desk.rows(2, 'alerts')).toEqual([
      ['dead-letters', 'clear'],
      ['failures', 'clear'],
    ])

    // At noon, the database is down.
    downstream.isUp = false
    await arrive(100, 12)
    await t.advance('5m')
    const raised = await desk.says('alerts')
    expect(raised).toMatch(/^dead-letters +raised +2026-01-01 01:00:10Z +12 dead letters within a day\.$/m)
    expect(raised).toMatch(/^failures +raised +2026-01-01 01:00:10Z +28\.6 % of all events failed\.$/m)

    // The operator looks for what is wrong, for whom, and since when.
    const deadLetters = await desk.rows(8, 'dead', 'list', `--flow=${FLOW}`, '--limit=5')
    const deadLetter = [FLOW, expect.stringMatching(/^user-1\d\d$/), '2026-01-01', '01:00:06Z', '3', '1', 'dead']
    expect(deadLetters).toEqual(Array.from({ length: 5 }, () => [expect.any(String), ...deadLetter]))
    const [id = '', , lane = ''] = deadLetters[0] ?? []
    const shown = await desk.says('dead', 'show', id)
    const attempts = /^attempt +2026-01-01 01:00:(\d\d)Z.*: Error: The database refuses connections\.$/gm
    expect(Array.from(shown.matchAll(attempts), ([, second]) => second)).toEqual(['00', '01', '06'])
    expect(shown).toMatch(new RegExp(`^key +${lane}$`, 'm'))
    expect(shown).toMatch(/^event +\S+ +garmin\/sleep$/m)
    expect(await desk.says('explain', FLOW, lane)).toMatch(/ended as dead 4\.9 minutes ago, and it has 1 dead letter\b/)
    const [of, received, , done, dead] = (await desk.rows(5, 'stats', '--window=24h', '--by=source,type'))[1] ?? []
    expect({ of, received, done, dead }).toEqual({ of: 'garmin/sleep', received: '42', done: '30', dead: '12' })

    // The operator pauses the flow, so that no more events die during the repair; arriving events wait.
    expect(await desk.says('flows', 'pause', FLOW, '--reason=the database is away')).toBe('Done.\n')
    await arrive(200, 3)
    await t.advance('10m')
    expect(await desk.says('flows')).toMatch(/^health-metrics +3 +0 .*by ada: the database is away$/m)
    expect(await desk.says('explain', FLOW, 'user-201')).toContain('the database is away')
    expect(await desk.says('dead', 'count', `--flow=${FLOW}`)).toBe('12 dead letters.\n')
    expect(await desk.run('dead', 'count', '--flow=another')).toMatchObject({
      code: 3,
      stderr: 'NOT_FOUND: There is no flow "another". sluice flows lists all flows.\n',
    })
    downstream.isUp = true
    expect(await desk.says('flows', 'resume', FLOW)).toBe('Done.\n')
    const asked = await desk.run('dead', 'retry', `--flow=${FLOW}`)
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('12 dead letters of http://127.0.0.1:')])
    expect(await desk.says('dead', 'retry', `--flow=${FLOW}`, '--yes')).toBe('retried 12 dead letters.\n')
    await t.advance('5m')
    expect(downstream.stored).toBe(45)
    expect(await desk.says('dead', 'count')).toBe('0 dead letters.\n')
    // There are no dead letters left, and so nothing counts as failed.
    expect(await desk.says('stats', '--by=flow')).toMatch(/^health-metrics +45 +\S+ +45 +0 +0 +0\.0 %/m)
    expect(await desk.rows(2, 'alerts')).toEqual([
      ['dead-letters', 'clear'],
      ['failures', 'clear'],
    ])
    // The alert is checked every ten seconds, and notifies once when it is raised and once when it clears.
    const heard = await desk.json<{ items: { type: string; subject: string }[] }>('events', '--source=sluice')
    expect(heard.items.map(({ type, subject }) => `${type} ${subject}`).toReversed()).toEqual([
      'alert.raised failures',
      'alert.raised dead-letters',
      'alert.cleared failures',
      'alert.cleared dead-letters',
    ])

    // The audit log shows who did what, and is whole.
    const entries = await desk.rows(100, 'audit')
    const acts = entries.filter((words) => words[2] === 'ada').map(([day, at, , ...what]) => [day, at, what.join(' ')])
    // Each action has its entries, with their times, and there are no others.
    const told = acts.map(
      ([day, at, what = '']) => `${day} ${at} ${what.replace(/^(?:requested|done \([^)]*\)): /, '')}`,
    )
    expect([...new Set(told)].toReversed()).toEqual([
      expect.stringMatching(/^2026-01-01 01:05:00Z paused? the flow health-metrics: the database is away$/),
      expect.stringMatching(/^2026-01-01 01:15:00Z resumed? the flow health-metrics$/),
      expect.stringMatching(/^2026-01-01 01:15:00Z retr(?:y|ied) the dead letters of \{"flow":"health-metrics"\}$/),
    ])
    expect(entries.at(-1)).toEqual(expect.arrayContaining(['00:00:00Z', 'loopback', 'key', 'ada']))
    expect(await desk.says('audit', 'verify')).toBe(`The chain is whole: ${entries.length} entries.\n`)
  })
})

const SRC = new URL('../../src/', import.meta.url)

/** The app of the seed as a program of its own. Its database is up once there is a file named `fixed`. */
const CONFIG = `
import { existsSync } from 'node:fs'
import { alerts, Sluice } from '${new URL('index.ts', SRC).href}'
import { systemClock } from '${new URL('clock.ts', SRC).href}'
import { garmin } from '${new URL('sources/index.ts', SRC).href}'
// Alerts are checked every ten seconds; here this takes half a second, and nothing else differs.
const after = (delay, call) => systemClock.after(delay === 10_000 ? 500 : delay, call)
const app = new Sluice({ store: 'sqlite:app.db', poll: '50ms', log: false, admin: { open: 'loopback' }, clock: { ...systemClock, after } })
app.source('garmin', garmin({ clientId: 'garmin-client-0123456789' }))
app.flow('${FLOW}', { on: 'garmin/*', key: (event) => event.subject, retry: [], run: () => {
  if (!existsSync('fixed')) throw new Error('The database refuses connections.')
} })
app.alert('dead-letters', { when: alerts.deadLetters({ above: 10 }) })
export default app
`

/** A request as Garmin sends it: items of several people. */
function sleepOf(users: number): string {
  const sleeps = Array.from({ length: users }, (_, at) => ({ userId: `user-${at}`, summaryId: `night-${at}` }))
  return `--data=${JSON.stringify({ sleeps })}`
}

test('the same works beside sluice start on a file, watched live, until somebody changes the audit log', async () => {
  const folder = folderWith({ 'sluice.config.ts': CONFIG })
  const server = await serve(folder)
  const desk = new Desk(server.url, folder)
  await desk.signIn('ada')
  const tail = new Program(folder, ['tail', '--verbose'], desk.env)
  const ended = (how: 'dead' | 'done', runs: number): Promise<string> => {
    const end = `.* ${FLOW} \\S+ \\S+ ${how}\\n`
    return tail.said(new RegExp(`(?:${end}(?:(?!${end}).*\\n)*){${runs}}`))
  }
  // The notification comes before the audit entry.
  const standing = (state: string): Promise<string> =>
    until(
      () => desk.says('alerts'),
      (text) => text.includes(` ${state} `),
    )
  await tail.said(/(Watching)/)

  // The alert is raised, and the stream shows it.
  expect(await desk.says('send', 'garmin', sleepOf(12))).toMatch(/^200 stored \w+/)
  await ended('dead', 12)
  await tail.said(/(alert\.raised)/)
  expect(await standing('raised')).toMatch(/^dead-letters +raised +20.*1[12] dead letters within a day\.$/m)
  expect(await desk.rows(1, 'events', '--source=sluice', '--type=alert.raised')).toHaveLength(1)

  // The operator finds and explains it.
  expect(await desk.says('dead', 'list', '--key=user-7', `--flow=${FLOW}`)).toContain(
    'The database refuses connections.',
  )
  expect(await desk.says('explain', FLOW, 'user-7')).toMatch(/ended as dead .* it has 1 dead letter\b/)

  // The fault is fixed. The operator counts the dead letters and retries them, those of one person first.
  writeFileSync(join(folder, 'fixed'), '')
  expect(await desk.says('dead', 'count')).toBe('12 dead letters.\n')
  expect(await desk.says('dead', 'retry', `--flow=${FLOW}`, '--key=user-7', '--yes')).toBe('retried 1 dead letter.\n')
  await ended('done', 1)
  expect(await desk.says('explain', FLOW, 'user-7')).toContain('ended as done')
  expect(await desk.says('dead', 'count')).toBe('11 dead letters.\n')
  expect(await desk.says('dead', 'retry', '--all', '--yes')).toBe('retried 11 dead letters.\n')
  await ended('done', 12)
  expect(await desk.says('dead', 'count')).toBe('0 dead letters.\n')
  expect((await desk.run('dead')).stderr).toBe('There are no dead letters.\n')

  // The alert clears.
  await tail.said(/(alert\.cleared)/)
  expect(await standing('clear')).toMatch(/^dead-letters +clear +-$/m)
  expect(await desk.rows(1, 'events', '--source=sluice', '--type=alert.cleared')).toHaveLength(1)

  // The audit log is whole, until somebody changes it in the file.
  const { items } = await desk.json<{ items: { id: number; who: string; what: string }[] }>('audit')
  const entryOf = (filter: string): number =>
    items.find(({ who, what }) => who === 'ada' && what.endsWith(` the dead letters of ${filter}`))?.id ?? 0
  const one = entryOf(`{"flow":"${FLOW}","key":"user-7"}`)
  expect(one).toBeGreaterThan(0)
  expect(entryOf('{"all":true}')).toBeGreaterThan(one)
  expect(await desk.says('audit', 'verify')).toBe(`The chain is whole: ${items.length} entries.\n`)
  expect(await tail.stop()).toBe(0)
  expect(await server.program.stop()).toBe(0)
  const db = new DatabaseSync(join(folder, 'app.db'))
  db.prepare('update audit set who = ? where id = ?').run('eve', one)
  db.close()
  const again = await serve(folder)
  const verified = await run(folder, ['audit', 'verify'], { env: { ...desk.env, SLUICE_URL: again.url } })
  expect([verified.code, verified.stdout]).toEqual([
    1,
    `The chain is broken at entry ${one}: that entry or an earlier one was changed.\n`,
  ])
})
