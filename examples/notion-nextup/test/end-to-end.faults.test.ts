// The end-to-end part of the design's test plan, in real time: a webhook server of its own process, real HTTP on both sides.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from 'sluice'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Scenario } from '../../kit/example.ts'
import { serveHandler, type Served as Server } from '../../kit/http.ts'
import { play } from '../../kit/play.ts'
import { nextUpExample } from '../example.ts'
import type { World } from '../scenarios/stage.ts'
import { DATA_SOURCE, NotionStandIn, TOKEN } from '../stand-in/notion.ts'
import {
  ACTION_SECRET,
  actionWebhook,
  deliverTo,
  integrationWebhook,
  VERIFICATION_TOKEN,
} from '../stand-in/webhooks.ts'
import { person, rankOf } from './virtual.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
const [ada, ben, cleo] = [person('ada'), person('ben'), person('cleo')]

let notion: NotionStandIn
let server: Server
let folder: string
let child: ChildProcess | undefined

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-nextup-'))
  notion = new NotionStandIn({ clock: systemClock, latency: [20, 60] })
  server = await serveHandler(notion.fetch)
})

afterEach(async () => {
  if (child?.exitCode === null) child.kill('SIGKILL')
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Served {
  readonly url: string
  readonly log: () => string
  /** Its exit code. */
  readonly stop: () => Promise<unknown>
}

/** As a user would: the environment names the Notion to work on. */
async function served(...args: readonly string[]): Promise<Served> {
  const env = {
    PATH: process.env['PATH'],
    NOTION_TOKEN: TOKEN,
    NOTION_URL: server.url,
    NOTION_DATA_SOURCE_ID: DATA_SOURCE,
    NOTION_ACTION_SECRET: ACTION_SECRET,
    NOTION_VERIFICATION_TOKEN: VERIFICATION_TOKEN,
    SLUICE_STORE: `sqlite:${join(folder, 'nextup.db')}`,
    DEBOUNCE_MS: '400',
    PAGE_DEBOUNCE_MS: '200',
  }
  const begun = spawn(process.execPath, [MAIN, '--serve', '--port=0', ...args], { env })
  child = begun
  let log = ''
  for (const stream of [begun.stdout, begun.stderr]) stream.on('data', (text) => (log += String(text)))
  await expect.poll(() => /Listens on (\S+);/.exec(log)?.[1]).toBeDefined()
  const stop = async (): Promise<unknown> => {
    const ended = once(begun, 'exit')
    begun.kill('SIGTERM')
    const [code] = (await ended) as [unknown]
    return code
  }
  return { url: /Listens on (\S+);/.exec(log)?.[1] ?? '', log: () => log, stop }
}

describe('the webhook server', () => {
  it('ranks the tasks of several users, tells their lives, and keeps to three calls a second', async () => {
    const pages = [ada, ben, cleo].map((user) => [1, 2].map((n) => notion.add({ assignees: [user], importance: n })))
    const began = systemClock.monotonic()
    const app = await served()
    const deliver = deliverTo(app.url)
    const firsts = pages.flatMap(([page]) => (page === undefined ? [] : [page]))
    for (const page of [...firsts, ...firsts, notion.add({})]) expect(await deliver(actionWebhook(page))).toBe(200)
    const change = { by: ada, at: systemClock.now(), properties: [] }
    for (const page of firsts) expect(await deliver(integrationWebhook({ page, ...change }))).toBe(200)
    await expect
      .poll(() => pages.map((own) => own.map((page) => rankOf(page)[0])))
      .toEqual([
        [2, 1],
        [2, 1],
        [2, 1],
      ])
    for (const word of ['enqueued', 'dequeued', 'started', 'finished', 'skipped']) {
      await expect.poll(app.log).toMatch(new RegExp(`  ${word} `))
    }
    expect(await app.stop()).toBe(0)
    expect(notion.calls.some(({ path }) => path === `/v1/pages/${firsts[0]?.id}`)).toBe(true)
    // A busy machine delays calls and so brings some closer together, but no call comes before its slot.
    const times = notion.calls.map(({ at }) => at - began)
    for (const [n, at] of times.entries()) expect(at).toBeGreaterThanOrEqual(Math.floor(n / 3) * 1_000)
  })

  it('writes nothing in a dry run', async () => {
    const page = notion.add({ assignees: [ada], importance: 1 })
    const app = await served('--dry-run')
    expect(await deliverTo(app.url)(actionWebhook(page))).toBe(200)
    await expect.poll(app.log).toMatch(/finished .*user-ada .*0 of 1 tasks updated/)
    expect(await app.stop()).toBe(0)
    expect(app.log()).toContain('Dry run: nothing is written.')
    expect(rankOf(page)).toEqual([null, null])
    expect(notion.calls.map(({ method }) => method)).toEqual(['GET', 'POST'])
  })
})

type One = Scenario<World>
const held: One = async (stage) => stage.check('fine', true)
const failing: One = async (stage) => stage.check('not fine', false)
const breaking: One = async () => {
  throw new Error('in the middle')
}

describe('the scenarios', () => {
  it('are told, and one that fails or breaks off is seen', async () => {
    const lines: string[] = []
    const played = (scenarios: Readonly<Record<string, One>>): Promise<boolean> =>
      play(
        { ...nextUpExample, scenarios },
        { store: `sqlite:${join(folder, 'play.db')}`, write: (line) => lines.push(line) },
      )
    const [first] = Object.entries(nextUpExample.scenarios)
    expect(await played({ ...Object.fromEntries(first === undefined ? [] : [first]), holds: held })).toBe(true)
    expect(lines.join('\n')).toMatch(/s {2}ada +edits .*\n(.*\n)+.*ok +5 edits, 1 run\n/)
    expect(await played({ holds: held, fails: failing })).toBe(false)
    expect(await played({ 'breaks off': breaking, holds: held })).toBe(false)
    expect(lines.join('\n')).toMatch(/FAILED in the middle\n\n2\. holds/)
  })
})
