// Runs each command against a running server and against the app itself: same output, documented exit codes, and --json as in the API.
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { EXIT } from '../../src/cli/exit.ts'
import { APP, folderWith, run, runAlone, serve, until, type Ran, type Served } from './commands-rig.ts'

const FILES = { 'sluice.config.ts': APP }

interface Items<T> {
  readonly items: readonly T[]
}

interface Letter {
  readonly id: string
  readonly key: string
}

async function served(): Promise<Served & { readonly folder: string }> {
  const folder = folderWith(FILES)
  return { ...(await serve(folder)), folder }
}

const get = async (url: string, path: string): Promise<unknown> => (await fetch(url + path)).json()

/** Waits until there are `count` dead letters. */
function deadLetters({ url }: Served, count: number): Promise<Items<Letter>> {
  const ask = (): Promise<Items<Letter>> => get(url, '/v1/dead-letters') as Promise<Items<Letter>>
  return until(ask, ({ items }) => items.length === count)
}

const plainly = ({ code, stderr }: Ran): readonly unknown[] => [code, stderr]

const hasItems = (least: number) => (ran: Ran) => (ran.json as Items<unknown>).items.length >= least

describe('commands that ask the running server', () => {
  it('print the response of the API unchanged with --json', async () => {
    const server = await served()
    await server.publish('order', 'ada')
    await server.publish('late', 'ada')
    await server.publish('bad', 'ada')
    await deadLetters(server, 1)
    const asked = {
      '/v1/flows': ['flows'],
      '/v1/lanes': ['lanes'],
      '/v1/limits': ['limits'],
      '/v1/dead-letters': ['dead', 'list'],
      '/v1/dead-letters/count': ['dead', 'count'],
      '/v1/events': ['events'],
      '/v1/runs': ['runs'],
      '/v1/sources': ['sources'],
      '/v1/replays': ['replay', 'list'],
      '/v1/keys': ['keys'],
      '/v1/audit': ['audit'],
      '/v1/audit/verify': ['audit', 'verify'],
    }
    for (const [path, words] of Object.entries(asked)) {
      const ran = await server.sluice(...words, '--json')
      expect([words, ...plainly(ran)]).toEqual([words, 0, ''])
      expect(ran.json).toEqual(await get(server.url, path))
    }
    const alerts = await server.sluice('alerts', '--json')
    expect(alerts.json).toMatchObject({ items: [{ name: 'many-dead' }] })
  })

  it('print tables for people, without colours into a pipe', async () => {
    const server = await served()
    await server.publish('late', 'ada')
    const { stdout } = await runAlone(server.folder, ['lanes'], { env: { SLUICE_URL: server.url } })
    expect(stdout).toMatch(/^id +flow +key +state +waiting +in run +due\n[\w-]+ +waits +ada +waiting +1 +- +20\d\d-/)
    expect(stdout).not.toContain('\u001b')
    const env = { SLUICE_URL: server.url, FORCE_COLOR: '1' }
    expect((await runAlone(server.folder, ['lanes'], { env })).stdout).toContain('\u001b[1mid')
    const plain = await run(server.folder, ['lanes'], { env: { SLUICE_URL: server.url, NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b')
  })

  it('spell out control characters', async () => {
    const server = await served()
    await server.publish('late', '\u001b[2Jgone\u202e')
    const { stdout } = await server.sluice('lanes')
    expect(stdout).toContain(String.raw`\u001b[2Jgone\u202e`)
    expect(stdout).not.toContain('\u001b')
  })

  it('explain a key, hold and unhold its lane, and run it now', async () => {
    const server = await served()
    await server.publish('late', 'ada')
    const explained = await server.sluice('explain', 'waits', 'ada')
    expect(explained.stdout).toMatch(/wait/)
    expect(await server.sluice('lanes', 'hold', 'waits', 'ada', '--reason=a look')).toMatchObject({ stdout: 'Done.\n' })
    expect((await server.sluice('lanes', 'show', 'waits', 'ada')).stdout).toMatch(/held +by loopback: a look/)
    expect((await server.sluice('lanes', 'unhold', 'waits', 'ada')).code).toBe(0)
    expect((await server.sluice('lanes', 'cancel', 'waits', 'ada')).stderr).toContain('CONFLICT')
    expect((await server.sluice('lanes', 'run-now', 'waits', 'ada')).code).toBe(0)
    await until(
      () => server.sluice('runs', '--flow=waits', '--json'),
      (ran) => (ran.json as Items<unknown>).items.length === 1,
    )
    const gone = await server.sluice('lanes', 'show', 'waits', 'ada')
    expect([gone.code, gone.stderr]).toEqual([3, expect.stringContaining('sluice explain waits ada')])
  })

  it('drop a lane only after a confirmation', async () => {
    const server = await served()
    await server.publish('late', 'ada')
    const asked = await server.sluice('lanes', 'drop', 'waits', 'ada')
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('--yes')])
    expect((await server.sluice('lanes', 'drop', 'waits', 'ada', '--yes')).code).toBe(0)
    expect((await server.sluice('lanes')).stderr).toContain('All lanes are empty')
  })

  it('pause and resume flows and limits', async () => {
    const server = await served()
    expect((await server.sluice('flows', 'pause', 'does', '--reason=the shop is shut')).code).toBe(0)
    expect((await server.sluice('flows')).stdout).toContain('by loopback: the shop is shut')
    expect((await server.sluice('flows', 'resume', 'does')).code).toBe(0)
    expect((await server.sluice('limits', 'pause', 'calls', '--for=5m')).stdout).toMatch(/^Paused until 20/)
    const endless = await server.sluice('limits', 'pause', 'calls', '--for=999999999999d')
    expect(endless.stdout).toBe('Paused until an operator resumes it.\n')
    expect((await server.sluice('limits')).stdout).toMatch(/^calls +here +an operator resumes it$/m)
    expect((await server.sluice('limits', 'resume', 'calls')).code).toBe(0)
    expect((await server.sluice('limits', '--json')).json).toMatchObject({ items: [{ name: 'calls', declared: true }] })
    expect((await server.sluice('flows', 'pause', 'nothing')).code).toBe(3)
  })

  it('show, retry, drop and export dead letters, one or many, with a count first', async () => {
    const server = await served()
    for (const user of ['ada', 'bob', 'cyd']) await server.publish('bad', user)
    const { items } = await deadLetters(server, 3)
    const ada = items.find(({ key }) => key === 'ada')?.id ?? ''
    expect((await server.sluice('dead')).stdout).toContain('no luck today')
    expect((await server.sluice('dead', 'show', ada)).stdout).toMatch(/attempt +20.*no luck today/)
    const exported = await server.sluice('dead', 'export')
    const lines = exported.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Letter)
    expect(lines.map(({ key }) => key).toSorted()).toEqual(['ada', 'bob', 'cyd'])
    expect(exported.stderr).toMatch(/exported {2}100 % {2}3 of 3/)
    const unasked = await server.sluice('dead', 'drop', ada)
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringMatching(/permanently drops.*--yes/)])
    expect((await server.sluice('dead', 'drop', ada, '--yes')).code).toBe(0)
    expect((await server.sluice('dead', 'drop', ada, '--yes')).code).toBe(3)
    writeFileSync(join(server.folder, 'fixed'), '')
    const asked = await server.sluice('dead', 'retry', '--flow=fails')
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('2 dead letters')])
    const retried = await server.sluice('dead', 'retry', '--flow=fails', '--key=bob', '--yes')
    expect([retried.code, retried.stdout]).toEqual([0, 'retried 1 dead letter.\n'])
    expect((await deadLetters(server, 1)).items).toMatchObject([{ key: 'cyd' }])
    expect((await server.sluice('dead', 'retry', '--all', '--yes')).stdout).toBe('retried 1 dead letter.\n')
    await deadLetters(server, 0)
    expect((await server.sluice('dead', 'retry', '--flow=fails', '--yes')).stdout).toBe(
      'There are no such dead letters.\n',
    )
    expect((await server.sluice('dead', 'retry')).code).toBe(2)
    expect((await server.sluice('dead', 'retry', ada, '--flow=fails')).code).toBe(2)
  })

  it('export more than one page into a file', async () => {
    const server = await served()
    const users = Array.from({ length: 130 }, (_, at) => `user-${at}`)
    await Promise.all(users.map((user) => server.publish('bad', user)))
    await until(
      () => get(server.url, '/v1/dead-letters/count') as Promise<{ count: number }>,
      ({ count }) => count === users.length,
    )
    expect((await server.sluice('dead', 'export', '--out=dead.jsonl')).stdout).toBe('')
    // The file is private because it contains payloads.
    expect(statSync(join(server.folder, 'dead.jsonl')).mode & 0o777).toBe(0o600)
    const lines = readFileSync(join(server.folder, 'dead.jsonl'), 'utf8').trimEnd().split('\n')
    expect(new Set(lines.map((line) => (JSON.parse(line) as Letter).key))).toEqual(new Set(users))
    const nowhere = await server.sluice('dead', 'export', '--out=no/such/folder')
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('ENOENT')])
  })

  it('show an event with all its details, replay it, and purge it', async () => {
    const server = await served()
    const id = await server.publish('order', 'ada')
    await server.publish('late', 'ada')
    const runs = (): Promise<Ran> => server.sluice('runs', '--json')
    await until(runs, hasItems(1))
    expect((await server.sluice('events', 'show', id)).stdout).toMatch(
      /source +shop\ntype +order[^]*body +\{"type":"order"/,
    )
    const replayed = await server.sluice('replay', 'start', `--event=${id}`, '--yes')
    expect([replayed.code, replayed.stdout]).toEqual([0, expect.stringMatching(/state +done/)])
    expect(replayed.stderr).toMatch(/replay {2}100 % {2}1 of 1/)
    await until(runs, hasItems(2))
    expect((await server.sluice('purge', `--event=${id}`)).code).toBe(2)
    const both = await server.sluice('purge', `--event=${id}`, '--tenant=x', '--yes')
    expect([both.code, both.stderr]).toEqual([2, 'Pass --flow and --key, or --tenant, or --subject, or --event.\n'])
    const purged = await server.sluice('purge', `--event=${id}`, '--yes', '--json')
    expect(purged.json).toMatchObject({ events: 1 })
  })

  it('create a key, which the server then requires, and revoke it', async () => {
    const server = await served()
    const roleless = await server.sluice('keys', 'create', 'grafana')
    expect([roleless.code, roleless.stderr]).toEqual([
      2,
      expect.stringContaining('--role must be read, publish, register or operate'),
    ])
    const operating = (await server.sluice('keys', 'create', 'ada', '--role=operate')).stdout.trim()
    const made = await server.sluice('keys', 'create', 'grafana', '--role=read', `--api-key=${operating}`)
    const reading = made.stdout.trim()
    expect(reading).toMatch(/^slk_/)
    const without = await server.sluice('flows')
    expect([without.code, without.stderr]).toEqual([4, expect.stringContaining('KEY_MISSING')])
    const env = { SLUICE_URL: server.url, SLUICE_KEY: reading }
    expect((await run(server.folder, ['flows'], { env })).code).toBe(0)
    const low = await run(server.folder, ['flows', 'pause', 'does'], { env })
    expect([low.code, low.stderr]).toEqual([4, expect.stringContaining('ROLE_TOO_LOW')])
    expect((await server.sluice('flows', '--api-key=slk_wrong')).stderr).toContain('KEY_INVALID')
  })

  it('verify the audit log up to a head that was stored elsewhere', async () => {
    const server = await served()
    await server.sluice('flows', 'pause', 'does')
    const kept = /(--head=[\w-]{43})\n/.exec((await server.sluice('audit', 'verify', '--verbose')).stderr)?.[1] ?? ''
    await server.sluice('flows', 'resume', 'does')
    expect((await server.sluice('audit', 'verify', kept)).code).toBe(0)
    const other = await server.sluice('audit', 'verify', `--head=${'x'.repeat(43)}`)
    expect([other.code, other.stdout]).toEqual([1, expect.stringContaining('no entry has the hash')])
  })

  it('sum up what arrived and how it ended', async () => {
    const server = await served()
    await server.publish('order', 'ada')
    await server.publish('bad', 'ada')
    await deadLetters(server, 1)
    await until(() => server.sluice('runs', '--flow=does', '--json'), hasItems(1))
    const total = { received: 2, done: 1, dead: 1 }
    expect((await server.sluice('stats', '--window=1h', '--json')).json).toMatchObject({ total })
    expect((await server.sluice('stats', '--by=flow')).stdout).toMatch(/^From 20[^]*\nfails .*100\.0 %[^]*\nall +2 /)
    expect((await server.sluice('stats', '--window=2d')).stdout).toMatch(/^all +2 +1\.0\/day /m)
    expect((await server.sluice('stats', '--window=ages')).code).toBe(2)
  })

  it('continue a list where a page ended', async () => {
    const server = await served()
    const ids = [await server.publish('late', 'ada'), await server.publish('late', 'bob')]
    const first = await server.sluice('events', '--source=shop', '--limit=1')
    const cursor = /--cursor=(\S+)/.exec(first.stderr)?.[1]
    const second = await server.sluice('events', '--source=shop', '--limit=1', `--cursor=${cursor}`)
    expect(first.stdout).toContain(ids[1])
    expect(second.stdout).toContain(ids[0])
    expect(second.stdout).not.toContain(ids[1])
  })

  it.each([
    [200, ['limits']],
    [200, ['limits', '--json']],
    [200, ['explain', 'f', 'k']],
    [404, ['limits']],
    [404, ['limits', '--json']],
  ] as const)('let nothing of a stranger steer the terminal: %i, %j', async (status, args) => {
    // Characters that clear the screen (as one character and as two), hide, join or reverse text.
    const evil = '\u001b[2J\u009b2J\u00ad\u061c\u200b\u200d\u2060\u2066\u202e\ufeff'
    const problem = { status, code: 'NOT_FOUND', detail: evil, fix: evil }
    const page = { items: [{ name: evil, declared: true }], next: evil, text: evil }
    const server = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(status === 200 ? page : problem))
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ran = await run(folderWith({}), [...args, `--url=${url}`])
    expect(ran.stdout + ran.stderr).toContain(
      String.raw`\u001b[2J\u009b2J\u00ad\u061c\u200b\u200d\u2060\u2066\u202e\ufeff`,
    )
    expect(ran.stdout + ran.stderr).not.toMatch(/[^\n -~]/)
    if (ran.stdout.startsWith('{')) expect(ran.json).toEqual(status === 200 ? page : problem)
  })

  it('retry when the server asks them to wait', async () => {
    let calls = 0
    const server = createServer((_request, response) => {
      calls++
      response.writeHead(calls < 3 ? 429 : 200, { 'retry-after': '0', 'content-type': 'application/json' })
      response.end(calls < 3 ? '{"code":"TOO_MANY_REQUESTS","detail":"no","fix":"later","status":429}' : '{"items":[]}')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await run(folderWith({}), ['flows', `--url=${url}`])).toMatchObject({
      code: 0,
      stderr: 'There are no flows.\n',
    })
  })

  it('print problems as JSON too', async () => {
    const server = await served()
    const ran = await server.sluice('dead', 'show', 'nothing', '--json')
    expect(ran.code).toBe(3)
    expect(ran.json).toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })
})

describe('commands without a server', () => {
  it('open the app itself, name the person in the audit log, and print only the result to standard output', async () => {
    const folder = folderWith(FILES)
    const paused = await run(folder, ['flows', 'pause', 'does', '--reason=at night', '--verbose'])
    expect([paused.code, paused.stdout]).toEqual([0, 'Done.\n'])
    expect(paused.stderr).toMatch(/the configuration talks[^]*Using the app of .*sluice\.config\.ts, in this process/)
    const { items } = (await run(folder, ['audit', '--json'])).json as Items<{ who: string; what: string }>
    expect(items[0]?.what).toMatch(/^done \(ok\): pause the flow does: at night$/)
    expect(items[0]?.who).toBe(userInfo().username)
    expect((await run(folder, ['flows', '--json'])).json).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ flow: 'does', paused: expect.anything() })]) as unknown,
    })
    expect((await run(folder, ['audit', 'verify'])).stdout).toBe('The chain is whole: 2 entries.\n')
  })

  it('need no key for a store that they can open', async () => {
    const folder = folderWith(FILES)
    expect((await run(folder, ['keys', 'create', 'one', '--role=operate'])).code).toBe(0)
    expect((await run(folder, ['keys', 'revoke', 'one', '--yes'])).code).toBe(0)
    expect((await run(folder, ['keys'])).stderr).toContain('There are no keys')
  })

  it('name the process that uses the file if it is not a server', async () => {
    const folder = folderWith(FILES)
    const server = await serve(folder)
    const ran = await run(folder, ['flows'])
    expect([ran.code, ran.stderr]).toEqual([5, expect.stringContaining('STORE_IN_USE')])
    expect(await server.program.stop()).toBe(0)
    expect((await run(folder, ['flows'])).code).toBe(0)
  })
})

describe('how a command ends', () => {
  it.each<readonly [number, readonly string[], RegExp]>([
    [2, ['lanes', 'dance'], /lanes hold[^]*There is no command lanes dance\.\n$/],
    [2, ['lanes', 'hodl', 'a', 'b'], /^There is no command lanes hodl\. Did you mean sluice lanes hold\?\n$/],
    [2, ['lanse'], /^There is no command lanse\. Did you mean sluice lanes\?\n$/],
    [2, ['flows', 'pause'], /<flow> is missing/],
    [2, ['flows', 'pause', 'a', 'b'], /b is unexpected/],
    [2, ['dead', '--flwo=x'], /There is no option --flwo\. Did you mean --flow\?\n$/],
    [2, ['dead', '--flow'], /--flow needs a value: --flow=FLOW\.\n$/],
    [2, ['dead', '--json=yes'], /--json takes no value\.\n$/],
    [2, ['lanes', 'show', 'short'], /must be a flow and a key, or an id/],
    [2, ['work'], /--once/],
    [2, ['purge'], /--tenant/],
    [2, ['flows', 'retire', 'does'], /--yes/],
    [1, ['flows', 'retire', 'does', '--yes'], /a process still serves the flow/],
    [3, ['flows', 'retire', 'nothing', '--yes'], /NOT_FOUND/],
    [0, ['events', '--subject=nobody'], /There are no events/],
    [0, ['dead', '--subject=nobody'], /no dead letters/],
    [0, ['replay', 'start', '--subject=nobody', '--yes'], /found +0/],
    [2, ['replay', 'start', '--yes'], /--all/],
    [2, ['completion', 'cmd'], /bash, zsh, fish/],
    [2, ['dead', '--limit=many'], /REQUEST_INVALID.*limit/],
    [3, ['events', 'show', 'nothing'], /NOT_FOUND/],
    [5, ['tail'], /No server of/],
    [5, ['flows', '--url=http://127.0.0.1:9'], /is unreachable/],
    [5, ['flows', '--config=none.ts'], /CONFIG_MISSING/],
    [1, ['flows', '--url=not an address'], /CONFIG_INVALID.*url/],
    [0, ['dead', 'retry', '--help'], /--flow=FLOW/],
    [0, ['--config', 'sluice.config.ts', '--json', 'flows'], /"items"/],
    [0, ['dead', '--help'], /dead export/],
  ])('%i after sluice %j', async (code, args, text) => {
    const ran = await run(folderWith(FILES), args)
    expect([ran.code, ran.stdout + ran.stderr]).toEqual([code, expect.stringMatching(text)])
  })
})

describe('a process of its own', () => {
  it.each<readonly [number, readonly string[]]>([
    [0, ['flows', '--json']],
    [1, ['flows', 'retire', 'does', '--yes']],
    [2, ['lanse']],
    [3, ['events', 'show', 'nothing']],
    [5, ['tail']],
  ])('ends with %i after sluice %j, with the same output', async (code, args) => {
    const folder = folderWith(FILES)
    const { stdout, stderr } = await run(folder, args)
    expect(await runAlone(folder, args)).toMatchObject({ code, stdout, stderr })
  })
})

describe('docs/cli.md', () => {
  it('has every command and every exit code', () => {
    const text = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    for (const { name: words } of COMMANDS) expect(text).toContain(`sluice ${words}`)
    for (const code of Object.values(EXIT)) expect(text).toContain(`| ${code} `)
  })
})
