// Tests which app a command operates: that of the folder or of --config, through the server that has its store, and never another one.
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, createServer as createRelay, type AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { computeStoreId } from '../../src/store/open.ts'
import { APP, folderWith, Program, run, runAlone, serve, until, type Served } from './commands-rig.ts'

/** An app whose server listens on the port of the environment, or otherwise on a port that nothing uses. */
const LISTENING = `${APP}\nexport const listen = { port: Number(process.env.APP_PORT ?? 9) }\n`

const portOf = (url: string): string => new URL(url).port

interface Two {
  readonly server: Served
  /** The folder of the running app. */
  readonly its: string
  /** Makes the port of the running app the default port of commands. */
  readonly env: Readonly<Record<string, string>>
  readonly deadLetters: () => Promise<number>
}

/** Starts another app, with a dead letter. */
async function another(): Promise<Two> {
  const its = folderWith({ 'sluice.config.ts': APP })
  const server = await serve(its)
  await server.publish('bad', 'ada')
  const deadLetters = async (): Promise<number> => {
    const response = await fetch(`${server.url}/v1/dead-letters/count`)
    return ((await response.json()) as { readonly count: number }).count
  }
  await until(deadLetters, (count) => count === 1)
  return { server, its, env: { PORT: portOf(server.url) }, deadLetters }
}

describe('a command in the folder of an app', () => {
  it('operates that app, even if the server of another app has the default port', async () => {
    const { env, deadLetters } = await another()
    const folder = folderWith({ 'sluice.config.ts': LISTENING })
    const dropped = await run(folder, ['dead', 'drop', '--all', '--yes', '--verbose'], { env })
    expect([dropped.code, dropped.stdout]).toEqual([0, 'There are no such dead letters.\n'])
    expect(dropped.stderr).toContain(`Using the app of ${folder}`)
    expect(await deadLetters()).toBe(1)
  })

  it('refuses to operate another app if both have the same port, and names the two', async () => {
    const { server, its, env, deadLetters } = await another()
    const folder = folderWith({ 'sluice.config.ts': APP })
    const dropped = await run(folder, ['dead', 'drop', '--all', '--yes', '--json'], { env })
    expect([dropped.code, dropped.json]).toEqual([
      5,
      {
        status: 503,
        code: 'UNREACHED',
        detail: `The server at ${server.url} uses another store than ${folder}/sluice.config.ts.`,
        fix: expect.stringMatching(/--url=.*--config=/) as unknown,
      },
    ])
    for (const args of [['tail'], ['send', 'shop']]) {
      const ran = await run(folder, args, { env })
      expect([args, ran.code, ran.stderr]).toEqual([
        args,
        5,
        expect.stringContaining(`uses another store than ${folder}`),
      ])
    }
    const { checks } = (await run(folder, ['doctor', '--json'], { env })).json as {
      readonly checks: readonly { readonly name: string; readonly state: string }[]
    }
    expect(checks).toContainEqual(expect.objectContaining({ name: 'server', state: 'wrong' }))
    const named = await run(folder, ['dead', 'count', '--config=sluice.config.ts'], { env })
    expect([named.code, named.stdout]).toEqual([0, '0 dead letters.\n'])
    expect((await run(its, ['dead', 'count'], { env })).stdout).toBe('1 dead letter.\n')
    expect(await deadLetters()).toBe(1)
  })

  it('finds its server where the configuration makes it listen; send and tail do too', async () => {
    const folder = folderWith({ 'sluice.config.ts': LISTENING })
    const { url } = await serve(folder)
    const env = { APP_PORT: portOf(url) }
    const tail = new Program(folder, ['tail', '--verbose'], { ...env, PORT: '9' })
    await tail.said(/(Watching)/)
    const sent = await run(folder, ['send', 'shop', '--verbose'], { env })
    expect([sent.code, sent.stderr]).toEqual([0, expect.stringContaining(`Sending to ${url}/in/shop`)])
    await tail.said(/(event)/)
    const ran = await run(folder, ['flows', '--verbose', '--config=sluice.config.ts'], { env })
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining(`Using ${url}`)])
  })

  it('exits, whatever the configuration keeps open', async () => {
    const folder = folderWith({ 'sluice.config.ts': `${APP}\nsetInterval(() => {}, 1_000)\n` })
    expect((await runAlone(folder, ['flows'])).code).toBe(0)
  })
})

describe('the id of a store', () => {
  it("is the same for every spelling of the same store's address, and differs between stores", () => {
    const folder = folderWith({ 'one.db': '', 'two.db': '' })
    symlinkSync(folder, join(folder, 'link'))
    const one = computeStoreId(`sqlite:${folder}/one.db`)
    expect(computeStoreId(`sqlite:${relative(process.cwd(), folder)}/link/../link/one.db`)).toBe(one)
    expect(computeStoreId(`sqlite:${folder}/two.db`)).not.toBe(one)
    expect(computeStoreId(`sqlite:${folder}/link/yet.db`)).toBe(computeStoreId(`sqlite:${folder}/yet.db`))
    expect(computeStoreId('sqlite::memory:')).not.toBe(computeStoreId('memory:'))
    expect(computeStoreId('postgres://ada:secret@db/app?x=1')).toBe(computeStoreId('postgres://bob@db/app'))
    expect(computeStoreId('postgres://db/app')).not.toBe(computeStoreId('postgres://db/other'))
    expect(computeStoreId('postgres://db/app?schema=a')).not.toBe(computeStoreId('postgres://db/app?schema=b'))
  })
})

/** A server that responds as if it required a key, and the keys that it received. */
async function stranger(
  health: Readonly<Record<string, string>>,
): Promise<{ readonly seen: readonly (string | undefined)[]; readonly port: string }> {
  const seen: (string | undefined)[] = []
  const problem = { status: 401, code: 'KEY_MISSING', detail: 'No.', fix: 'Send one.' }
  const server = createServer(({ url, headers }, response) => {
    seen.push(headers.authorization)
    response.writeHead(url === '/healthz' ? 200 : 401, url === '/healthz' ? health : {})
    response.end(JSON.stringify(url === '/healthz' ? { ok: true } : problem))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { seen, port: String((server.address() as AddressInfo).port) }
}

/** A relay on a port of its own in front of a server, and the bytes that it passed on. */
async function relay(to: number): Promise<{ readonly port: string; readonly passed: () => string }> {
  let passed = ''
  const server = createRelay((client) => {
    const upstream = connect(to, '127.0.0.1')
    client.on('data', (bytes) => void (passed += bytes.toString('latin1')))
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream).pipe(client)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { port: String((server.address() as AddressInfo).port), passed: () => passed }
}

describe('a key', () => {
  it('is not sent to a server that neither the user nor the configuration named', async () => {
    const { seen, port } = await stranger({})
    const env = { PORT: port, SLUICE_KEY: 'slk_secret' }
    const outside = await run(folderWith({}), ['flows'], { env })
    expect([outside.code, outside.stderr]).toEqual([4, expect.stringContaining(`pass --url=http://127.0.0.1:${port}`)])
    expect((await run(folderWith({ 'sluice.config.ts': APP }), ['flows'], { env })).code).toBe(5)
    expect(seen.length).toBeGreaterThan(2)
    expect(new Set(seen)).toEqual(new Set([undefined]))
    await run(folderWith({}), ['flows', `--url=http://127.0.0.1:${port}`], { env })
    expect(seen.at(-1)).toBe('Bearer slk_secret')
  })

  it("is not sent to a process that took the server's port and claims to have the same store", async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const mark = computeStoreId(`sqlite:${folder}/app.db`)
    const { seen, port } = await stranger({ 'sluice-store': mark, 'sluice-proof': 'x'.repeat(43) })
    const env = { PORT: port, SLUICE_KEY: `slk_0123456789ab_${'x'.repeat(43)}` }
    for (const args of [['flows'], ['tail']]) {
      const ran = await run(folder, args, { env })
      expect([args, ran.code, ran.stderr]).toEqual([
        args,
        4,
        expect.stringContaining(`pass --url=http://127.0.0.1:${port}`),
      ])
    }
    expect(new Set(seen)).toEqual(new Set([undefined]))
  })

  it('is not sent to a relay that forwards every byte to the server of the configuration and back', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const { url } = await serve(folder)
    const server = { PORT: portOf(url) }
    const secret = (await run(folder, ['keys', 'create', 'ada', '--role=operate'], { env: server })).stdout.trim()
    const { port, passed } = await relay(Number(portOf(url)))
    const ran = await run(folder, ['dead', 'count'], { env: { PORT: port, SLUICE_KEY: secret } })
    expect([ran.code, ran.stderr]).toEqual([4, expect.stringContaining(`pass --url=http://127.0.0.1:${port}`)])
    expect(passed()).toContain('sluice-prove')
    expect(passed()).not.toContain(secret)
  })

  it.each([
    ['mistyped', `slk_0123456789ab_${'x'.repeat(43)}`],
    ['not a key at all', 'secret'],
  ])('that is %s is said to be wrong, not missing', async (_name, key) => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const { url } = await serve(folder)
    const env = { PORT: portOf(url) }
    await run(folder, ['keys', 'create', 'ada', '--role=operate'], { env })
    for (const where of [folder, folderWith({})]) {
      const ran = await run(where, ['flows', '--json'], { env: { ...env, SLUICE_KEY: key } })
      expect([ran.code, ran.json]).toEqual([
        4,
        {
          status: 401,
          code: 'KEY_INVALID',
          detail: `The server at ${url} did not prove that it knows this key, so the key was not sent.`,
          fix: expect.stringMatching(/SLUICE_KEY or --api-key.*--url=/) as unknown,
        },
      ])
    }
  })

  it('is sent to a server on the default port that proves to know it, from a folder without a configuration', async () => {
    const { url } = await serve(folderWith({ 'sluice.config.ts': APP }))
    const env = { PORT: portOf(url) }
    const elsewhere = folderWith({})
    const secret = (await run(elsewhere, ['keys', 'create', 'ada', '--role=operate'], { env })).stdout.trim()
    const ran = await run(elsewhere, ['dead', 'count'], { env: { ...env, SLUICE_KEY: secret } })
    expect([ran.code, ran.stdout]).toEqual([0, '0 dead letters.\n'])
  })

  it('is sent to the server of the configuration, which proves that it knows the key', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const { url } = await serve(folder)
    const env = { PORT: portOf(url) }
    const secret = (await run(folder, ['keys', 'create', 'ada', '--role=operate'], { env })).stdout.trim()
    expect((await run(folder, ['dead', 'count'], { env: { ...env, SLUICE_KEY: secret } })).stdout).toBe(
      '0 dead letters.\n',
    )
    const without = await run(folder, ['keys', 'create', 'bob', '--role=operate'], { env })
    expect([without.code, without.stderr]).toEqual([
      4,
      expect.stringMatching(/KEY_MISSING.*Set SLUICE_KEY.*stop the server/),
    ])
  })
})
