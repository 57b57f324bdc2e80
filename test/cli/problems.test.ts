// Tests problems: people and, with --json, programs get them in one form, and the exit code is the one in docs/cli.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { CLI_ERROR_CODES } from '../../src/cli/problem.ts'
import { HttpApiClient } from '../../src/cli/http-api-client.ts'
import { APP, folderWith, run, serve, until } from './commands-rig.ts'

describe('with --json', () => {
  it.each<readonly [number, string, readonly string[]]>([
    [5, 'UNREACHED', ['flows', '--url=http://127.0.0.1:9']],
    [5, 'UNREACHED', ['tail']],
    [5, 'CONFIG_MISSING', ['flows', '--config=none.ts']],
    [5, 'CONFIG_MISSING', ['start', '--config=none.ts']],
    [1, 'CONFIG_INVALID', ['flows', '--url=nowhere']],
    [2, 'YES_NEEDED', ['purge', '--tenant=x']],
    [2, 'USAGE_WRONG', ['purge']],
    [2, 'USAGE_WRONG', ['dead', '--flwo=x']],
    [2, 'USAGE_WRONG', ['dance']],
    [2, 'USAGE_WRONG', ['start', '--port=']],
    [2, 'USAGE_WRONG', ['dev', '--port=http']],
    [3, 'NOT_FOUND', ['lanes', 'show', 'waits', 'nobody']],
    [1, 'FILE_FAILED', ['dead', 'export', '--out=no/such/folder']],
  ])('%i, %s is a problem as the API has them: sluice %j', async (code, name, args) => {
    const ran = await run(folderWith({ 'sluice.config.ts': APP }), [...args, '--json'])
    expect([ran.code, ran.json]).toEqual([
      code,
      { status: expect.any(Number), code: name, detail: expect.stringMatching(/./), fix: expect.any(String) },
    ])
  })

  it('the version is JSON too', async () => {
    const ran = await run(folderWith({}), ['version', '--json'])
    expect([ran.code, ran.json]).toEqual([0, { version: expect.stringMatching(/^\d+\.\d+\.\d+$/) }])
  })

  it('docs/cli.md has every code of the command line itself', () => {
    const text = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    for (const code of CLI_ERROR_CODES) expect(text).toContain(`\`${code}\``)
  })
})

describe('a problem without a fix', () => {
  it('is printed without one, e.g. for a key that does not fit into a URL', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': APP }))
    const [ran, json] = [[], ['--json']].map((more) => server.sluice('explain', 'does', 'k'.repeat(100_000), ...more))
    expect([(await ran)?.code, (await ran)?.stderr]).toEqual([1, expect.not.stringContaining('undefined')])
    expect((await json)?.json).toMatchObject({ status: 431, code: expect.any(String), fix: '' })
  })
})

/** A Linux device to which nothing can be written. */
const FULL = '/dev/full'

/** An app whose runs fail until there is a file named `fixed`. */
const LONG = APP.replace(
  'export default app',
  `app.flow('long', { on: 'shop/long', key: keyOf, run: async () => {
  while (!existsSync('fixed')) await new Promise((resolve) => setTimeout(resolve, 20))
} })
export default app`,
)

describe('an action that was not done is not reported as a success', () => {
  it('if the lane runs', async () => {
    const folder = folderWith({ 'sluice.config.ts': LONG })
    const server = await serve(folder)
    await server.publish('long', 'ada')
    await until(
      async () => (await fetch(`${server.url}/v1/lanes`)).text(),
      (text) => text.includes('"running"'),
    )
    const [dropped, hurried] = await Promise.all([
      server.sluice('lanes', 'drop', 'long', 'ada', '--yes'),
      server.sluice('lanes', 'run-now', 'long', 'ada', '--json'),
    ])
    writeFileSync(join(folder, 'fixed'), '')
    expect([dropped.code, dropped.stdout]).toEqual([1, 'Not done: a run is in progress.\n'])
    expect([hurried.code, hurried.json]).toEqual([1, { result: 'running' }])
  })

  it.runIf(existsSync(FULL))('if the disk has no room for the output or the export', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const server = await serve(folder)
    await server.publish('bad', 'ada')
    await until(
      async () => (await server.sluice('dead', 'count')).stdout,
      (text) => text === '1 dead letter.\n',
    )
    const into = await server.sluice('dead', 'export', `--out=${FULL}`)
    expect([into.code, into.stderr]).toEqual([1, expect.stringMatching(/^ENOSPC/)])
    const env = { SLUICE_URL: server.url }
    for (const args of [['help'], ['dead', 'list'], ['dead', 'export'], ['keys', 'create', 'ada', '--role=operate']]) {
      const ran = await run(folder, args, { env, answer: FULL })
      expect([args, ran.code, ran.stderr]).toEqual([
        args,
        1,
        expect.stringMatching(/The output could not be written: ENOSPC.*\n$/),
      ])
    }
  })

  it('if some events of a replay failed', async () => {
    const strict = `const keyOf = (event) => { if (existsSync('fixed')) throw new Error('no such user'); return`
    const folder = folderWith({ 'sluice.config.ts': APP.replace(/const keyOf = .* =>(.*)/, `${strict}$1 }`) })
    const server = await serve(folder)
    await server.publish('order', 'ada')
    writeFileSync(join(folder, 'fixed'), '')
    const ran = await server.sluice('replay', 'start', '--all', '--yes')
    expect([ran.code, ran.stdout]).toEqual([
      1,
      expect.stringMatching(/state +done[^]*failed +1, last error: no such user/),
    ])
  })

  it.each([
    ['flows', '--url=https://ada:hunter2@sluice.test'],
    ['flows', '--url=htp://ada:hunter2@sluice.test'],
    ['flows', '--url=ada:hunter2@sluice.test'],
    ['backup', 'postgres://ada:hunter2@db.test/app', 'copy.db'],
    ['backup', 'sqlite://ada:hunter2@db.test/app', 'copy.db'],
  ])('of an address that has a password, without the password: %s %s', async (...args) => {
    const ran = await run(folderWith({}), args)
    expect([0, 3]).not.toContain(ran.code)
    expect(ran.stderr).not.toBe('')
    expect(ran.stdout + ran.stderr).not.toContain('hunter2')
  })

  it('if another process has the store of the server', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    await serve(folder)
    const ran = await run(folder, ['start', '--port=0'])
    expect([ran.code, ran.stderr]).toEqual([5, expect.stringMatching(/STORE_IN_USE[^]*--url/)])
  })

  it('if a call takes longer than its time limit: it continues on the server, and must not be repeated', async () => {
    const cause = Object.assign(new Error('Headers Timeout Error'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause })))
    onTestFinished(() => void vi.unstubAllGlobals())
    const caller = new HttpApiClient({ url: 'http://127.0.0.1:9', key: undefined })
    expect(await caller.call({ method: 'POST', path: '/v1/purge', body: { tenant: 'x' } })).toEqual({
      kind: 'unreached',
      why: 'http://127.0.0.1:9 is still working on the call after five minutes, and continues.',
      fix: expect.stringContaining('sluice audit') as unknown,
    })
  })
})
