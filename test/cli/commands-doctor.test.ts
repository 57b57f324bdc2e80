// Tests `sluice doctor`, `sluice migrate` and `sluice backup`: problems are found and printed with their fix, and set the exit code.
import { chmodSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { APP, folderWith, run, serve, until } from './commands-rig.ts'
import { Program } from './program.ts'

interface Report {
  readonly checks: readonly {
    readonly name: string
    readonly state: string
    readonly what: string
    readonly fix?: string
  }[]
  readonly defaults: Readonly<Record<string, unknown>>
}

const states = ({ checks }: Report): Readonly<Record<string, string>> =>
  Object.fromEntries(checks.map(({ name, state }) => [name, state]))

describe('sluice doctor', () => {
  it('finds no problem in a well configured app, and lists the defaults', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': APP }))
    const ran = await server.sluice('doctor', '--json')
    expect(ran.code).toBe(0)
    expect(states(ran.json)).toEqual({
      configuration: 'ok',
      server: 'ok',
      store: 'ok',
      clock: 'ok',
      keys: 'look',
      encryption: 'ok',
      sources: 'ok',
      limits: 'ok',
      alerts: 'ok',
      audit: 'ok',
    })
    expect((ran.json as Report).defaults).toMatchObject({ maxEvents: 1_000, lease: '30s' })
    const text = (await server.sluice('doctor')).stdout
    expect(text).toMatch(/ok +store +Acknowledged events survive a crash: WAL/)
    expect(text).toMatch(/retry +delays 1s 5s 30s 5m 30m, jitter 0\.2/)
  })

  it('finds an encryption key that does not read what is stored, and start warns of it', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const right = { env: { SLUICE_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64') } }
    const wrong = { env: { SLUICE_ENCRYPTION_KEY: Buffer.alloc(32, 2).toString('base64') } }
    const made = await run(folder, ['endpoints', 'create', 'https://example.com/hook'], right)
    expect(made.code).toBe(0)
    expect(states((await run(folder, ['doctor', '--json'], right)).json)).toMatchObject({ encryption: 'ok' })
    const ran = await run(folder, ['doctor', '--json'], wrong)
    expect(ran.code).toBe(1)
    const found = (ran.json as Report).checks.find(({ name }) => name === 'encryption')
    expect(found).toMatchObject({ state: 'wrong', what: expect.stringMatching(/endpoint ep_/) as string })
    expect(found?.fix).toContain('SLUICE_ENCRYPTION_KEY')

    const started = new Program(folder, ['start', '--port=0'], wrong.env)
    await started.said(/(WARNING: no encryption key reads endpoint ep_\S+; sluice doctor)/)
    expect(await started.stop()).toBe(0)
  })

  it('reads what sluice dev has encrypted, with the key that dev left beside the configuration', async () => {
    const key = Buffer.alloc(32, 3).toString('base64')
    const folder = folderWith({ 'sluice.config.ts': APP, '.sluice-encryption-key': key })
    chmodSync(join(folder, '.sluice-encryption-key'), 0o600)
    expect((await run(folder, ['endpoints', 'create', 'https://example.com/hook'])).code).toBe(0)
    const ran = await run(folder, ['doctor', '--json'])
    expect(states(ran.json)).toMatchObject({ encryption: 'ok' })
    expect((ran.json as Report).checks.find(({ name }) => name === 'encryption')?.what).toMatch(/^The key reads [1-9]/)
  })

  it.each<readonly [string, string, string, RegExp]>([
    ['a store that is gone with the process', APP.replace('sqlite:app.db', 'memory:'), 'store', /sqlite:sluice\.db/],
    ['a configuration that does not load', 'throw new Error("mine")', 'configuration', /mine/],
    [
      'the world let in without a key',
      `${APP}\nexport const listen = { host: '0.0.0.0', port: 9 }`,
      'keys',
      /sluice keys create/,
    ],
  ])('ends with 1 over %s', async (_, config, name, text) => {
    const ran = await run(folderWith({ 'sluice.config.ts': config }), ['doctor', '--json'])
    const found = (ran.json as Report).checks.find((check) => check.name === name)
    expect([ran.code, found?.state]).toEqual([1, 'wrong'])
    expect(`${found?.what} ${found?.fix ?? ''}`).toMatch(text)
  })

  it('prints hints that are not problems: no server, an open source, no alert', async () => {
    const config = APP.replace(/app\.alert.*/, '')
      .replace('{ bearer, github }', '{ github, unverified }')
      .replace(/bearer\(.*\)\)/, "unverified({ verify: 'none' }))")
    const ran = await run(folderWith({ 'sluice.config.ts': config }), ['doctor', '--json'])
    expect([ran.code, ran.stderr]).toEqual([0, expect.anything()])
    expect(states(ran.json)).toMatchObject({ server: 'look', sources: 'look', alerts: 'look', store: 'ok' })
  })

  it('names a broken alert, and does not count the limits of keys', async () => {
    const config = APP.replace(/when: .* }\)/, "when: () => { throw new Error('no such figure') } })")
      .replace('app.limit(', 'const calls = app.limit(')
      .replace('key: keyOf, run: () => {} })', 'key: keyOf, run: ({ key }) => calls.per(key).run(() => {}) })')
    const server = await serve(folderWith({ 'sluice.config.ts': config }))
    for (const user of ['ada', 'bob']) await server.publish('order', user)
    const of = async (path: string): Promise<string> => (await fetch(`${server.url}/v1/${path}`)).text()
    await until(
      () => of('limits'),
      (text) => text.includes('calls/ada') && text.includes('calls/bob'),
    )
    await until(
      () => of('alerts'),
      (text) => text.includes('no such figure'),
    )
    const { stdout } = await server.sluice('doctor')
    expect(stdout).toMatch(/look +alerts +many-dead throws: .*no such figure/)
    expect(stdout).toMatch(/ok +limits +1 declared\./)
    expect((await server.sluice('alerts')).stdout).toMatch(/many-dead +clear, broken .*no such figure/)
  })

  it('names the process that uses the file', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    await serve(folder)
    const ran = await run(folder, ['doctor'])
    expect([ran.code, ran.stdout]).toEqual([1, expect.stringMatching(/wrong +store +STORE_IN_USE/)])
  })
})

describe('sluice migrate', () => {
  it('creates the store and reports it, without a server', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const ran = await run(folder, ['migrate'])
    expect([ran.code, ran.stdout]).toEqual([0, expect.stringMatching(/schema of this release: \d+ bytes, WAL/)])
    const server = await serve(folder)
    const inUse = await server.sluice('migrate', '--json')
    expect([inUse.code, inUse.json]).toEqual([5, expect.objectContaining({ code: 'STORE_IN_USE' })])
  })
})

describe('sluice backup', () => {
  it('copies the file of a running server once, and prints what the copy contains', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    await serve(folder)
    const file = readdirSync(folder).find((name) => name.endsWith('.db')) ?? ''
    const ran = await run(folder, ['backup', file, 'copy.db'])
    expect([ran.code, ran.stdout]).toEqual([
      0,
      expect.stringMatching(/copy\.db has \d+ events in \d+ bytes, and is intact/),
    ])
    const again = await run(folder, ['backup', file, 'copy.db'])
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already exists')])
    expect((await run(folder, ['backup', file])).code).toBe(2)
    const missing = await run(folder, ['backup', 'none.db', 'other.db', '--json'])
    expect([missing.code, missing.json]).toEqual([3, expect.objectContaining({ code: 'STORE_MISSING' })])
  })
})
