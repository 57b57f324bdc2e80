// Tests the encryption key on the command line: given, missing, created for development, and rotated with a kill halfway.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { folderWith, Program, run, type Ran } from './commands-rig.ts'

const [OLD = '', NEW = ''] = [1, 2].map(() => randomBytes(32).toString('base64'))
const CHILD = fileURLToPath(new URL('rotate-child.ts', import.meta.url))

function configured(options = '', more = ''): string {
  return `
import { Sluice } from '${new URL('../../src/index.ts', import.meta.url).href}'
const app = new Sluice({ store: 'sqlite:app.db', log: false, admin: { open: 'loopback' }, ${options} })
app.delivery('versions', { on: 'version.*' })
${more}
export default app
`
}

const PLAIN = { 'sluice.config.ts': configured() }
const keys = (...all: readonly string[]): { readonly env: Readonly<Record<string, string>> } => ({
  env: { SLUICE_ENCRYPTION_KEY: all.join(',') },
})

describe('sluice start', () => {
  test('does not start with a delivery but without an encryption key, and says how to set one', async () => {
    const ran = await run(folderWith(PLAIN), ['start', '--port=0'])
    expect(ran.code).toBe(1)
    expect(ran.stderr).toMatch(
      /CONFIG_INVALID: encryptionKey must be set .*delivery.*SLUICE_ENCRYPTION_KEY.*openssl rand -base64 32/,
    )
  })

  test('names the key of sluice dev, with which endpoints may have been encrypted', async () => {
    const folder = folderWith({ ...PLAIN, '.sluice-encryption-key': OLD })
    const ran = await run(folder, ['start', '--port=0'])
    expect([ran.code, ran.stderr]).toEqual([
      1,
      expect.stringMatching(/to the key in \S+\.sluice-encryption-key for a store/),
    ])
  })

  test('starts with one key, and with several', async () => {
    for (const key of [OLD, `${NEW},${OLD}`]) {
      const program = new Program(folderWith(PLAIN), ['start', '--port=0'], { SLUICE_ENCRYPTION_KEY: key })
      expect(await program.said(/listens on (http:)/)).toBe('http:')
    }
  })

  test('rejects an invalid key and mentions only its length', async () => {
    const ran = await run(folderWith(PLAIN), ['start', '--port=0'], keys('c2hvcnQ='))
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/CONFIG_INVALID.*encryptionKey must be 32 random bytes.*got 5 bytes/),
    })
  })

  test('needs no key if nothing is encrypted', async () => {
    const bare = configured().replace(/app\.delivery.*/, '')
    const program = new Program(folderWith({ 'sluice.config.ts': bare }), ['start', '--port=0'])
    expect(await program.said(/listens on (http:)/)).toBe('http:')
  })

  test('rejects endpoints on this machine, unless --allow-loopback is set', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('delivery: { allowLoopback: true }') })
    const ran = await run(folder, ['start', '--port=0'], keys(OLD))
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/CONFIG_INVALID.*allowLoopback.*--allow-loopback/),
    })
    const forced = new Program(folder, ['start', '--port=0', '--allow-loopback'], { SLUICE_ENCRYPTION_KEY: OLD })
    expect(await forced.said(/listens on (http:)/)).toBe('http:')
  })

  test('work --once rejects them too', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('delivery: { allowLoopback: true }') })
    expect(await run(folder, ['work', '--once'], keys(OLD))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/CONFIG_INVALID.*allowLoopback.*--allow-loopback/),
    })
    expect(await run(folder, ['work', '--once', '--allow-loopback'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/CONFIG_INVALID.*encryptionKey/),
    })
    expect((await run(folder, ['work', '--once', '--allow-loopback'], keys(OLD))).code).toBe(0)
  })
})

describe('sluice dev', () => {
  test('creates an encryption key once that only its owner can read, and allows endpoints on this machine', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('delivery: { allowLoopback: true }') })
    const file = join(folder, '.sluice-encryption-key')
    const first = new Program(folder, ['dev', '--port=0'])
    expect(await first.said(/(created the encryption key)/)).not.toBe('')
    await first.said(/listens on (http:)/)
    await first.stop()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const made = readFileSync(file, 'utf8')
    expect(Buffer.from(made, 'base64')).toHaveLength(32)
    // Commands that open the app without a server use the same key.
    expect((await run(folder, ['endpoints', 'create', 'http://127.0.0.1:9/in'])).code).toBe(0)
    const second = new Program(folder, ['dev', '--port=0'])
    await second.said(/listens on (http:)/)
    expect(second.text).not.toContain('created the encryption key')
    await second.stop()
    expect(readFileSync(file, 'utf8')).toBe(made)
    expect((await run(folder, ['encryption', 'show', '--json'])).json).toMatchObject({ documents: 1, unreadable: [] })
    chmodSync(file, 0o644)
    expect((await run(folder, ['dev', '--port=0'])).stderr).toMatch(/CONFIG_INVALID.*chmod 600/)
  })

  test('uses the key of the environment if there is one', async () => {
    const folder = folderWith(PLAIN)
    const program = new Program(folder, ['dev', '--port=0'], { SLUICE_ENCRYPTION_KEY: OLD })
    await program.said(/listens on (http:)/)
    await program.stop()
    expect(() => statSync(join(folder, '.sluice-encryption-key'))).toThrow('ENOENT')
  })
})

/** Runs `use` with an app on the file of the folder, under these keys. */
async function within<T>(folder: string, key: readonly string[], use: (app: Sluice) => Promise<T>): Promise<T> {
  const app = new Sluice({ store: `sqlite:${join(folder, 'app.db')}`, encryptionKey: key, log: false })
  try {
    return await use(app.delivery('versions', { on: 'version.*' }))
  } finally {
    await app.stop()
  }
}

type Secrets = ReadonlyMap<string, string>

async function withEndpoints(folder: string, count: number): Promise<Secrets> {
  return within(folder, [OLD], async (app) => {
    const added = await Promise.all(
      Array.from({ length: count }, (_, at) => app.endpoints.create({ url: `https://hook.example.com/${at}` })),
    )
    return new Map(added.map(({ id, secret }) => [id, secret]))
  })
}

/** The ids of endpoints whose secret has changed. */
function unlike(folder: string, key: readonly string[], secrets: Secrets): Promise<readonly string[]> {
  return within(folder, key, async (app) => {
    const wrong: string[] = []
    for (const [id, secret] of secrets) {
      const found = await app.endpoints.findTarget(id).catch(() => undefined)
      if (found?.secrets[0] !== secret) wrong.push(id)
    }
    return wrong
  })
}

describe('sluice encryption rotate', () => {
  test('encrypts everything again, prints the count, and adds an audit entry', async () => {
    const folder = folderWith(PLAIN)
    const secrets = await withEndpoints(folder, 3)
    const sluice = (words: readonly string[], ...all: readonly string[]): Promise<Ran> =>
      run(folder, words, keys(...all))
    expect((await sluice(['encryption', 'show'], NEW, OLD)).stdout).toMatch(/with an older key +3/)
    const rotated = await sluice(['encryption', 'rotate'], NEW, OLD)
    expect(rotated).toMatchObject({ code: 0, stdout: '3 documents of 3 encrypted again with the first key.\n' })
    expect(rotated.stderr).toMatch(/encryption rotate {2}100 % {2}3 of 3/)
    expect((await sluice(['encryption', 'rotate', '--json'], NEW)).json).toEqual({
      scanned: 3,
      reencrypted: 0,
      unreadable: [],
    })
    expect((await sluice(['audit', 'list'], NEW)).stdout).toMatch(
      /encrypted 3 of endpoint with the encryption key [0-9a-f]{8}/,
    )
    expect(await unlike(folder, [NEW], secrets)).toEqual([])
  })

  test('exits with 1 and names what it cannot decrypt', async () => {
    const folder = folderWith(PLAIN)
    const secrets = await withEndpoints(folder, 1)
    const ran = await run(folder, ['encryption', 'rotate'], keys(NEW))
    expect(ran.code).toBe(1)
    expect(ran.stderr).toContain(`endpoint ${[...secrets.keys()][0]}`)
    expect((await run(folder, ['encryption', 'rotate'])).stderr).toContain('SLUICE_ENCRYPTION_KEY')
  })

  test('leaves everything readable when it is killed halfway, and a second call continues', async () => {
    const folder = folderWith(PLAIN)
    const secrets = await withEndpoints(folder, 700)
    const child = spawn(process.execPath, [CHILD, join(folder, 'app.db'), NEW, OLD], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    // When it is killed, two pages of documents are done, and the third is in progress or not begun.
    for (let page = 0; page < 4; page++) {
      child.stdin.write('\n')
      await lines.next()
    }
    child.stdin.write('\n')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const between = await within(folder, [NEW, OLD], (app) => app.admin.encryption.state())
    expect(between).toMatchObject({ documents: 700, unreadable: [] })
    expect(between.older).toBeGreaterThan(0)
    expect(between.older).toBeLessThan(700)
    expect(await unlike(folder, [NEW, OLD], secrets)).toEqual([])
    expect((await unlike(folder, [OLD], secrets)).length).toBe(700 - between.older)
    const rest = await run(folder, ['encryption', 'rotate', '--json'], keys(NEW, OLD))
    expect(rest.json).toEqual({ scanned: 700, reencrypted: between.older, unreadable: [] })
    expect(await unlike(folder, [NEW], secrets)).toEqual([])
  })
})
