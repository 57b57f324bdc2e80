// Tests `sluice dev` and `sluice start` as a user runs them: they find the configuration, print their addresses and stop at a signal.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { githubHeaders, SECRET } from '../receive/scene.ts'
import { Program } from './program.ts'

const SRC = new URL('../../src/', import.meta.url)
const FIXTURES = new URL('../http/fixtures/', import.meta.url)

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** TypeScript with types that must be stripped. */
function configured(answer: string): string {
  return `
import { Sluice } from '${new URL('index.ts', SRC).href}'
import { github } from '${new URL('sources/github.ts', SRC).href}'
const answer: string = '${answer}'
const app: Sluice = new Sluice({ store: 'memory:', log: false })
app.source('github', github({ secret: '${SECRET}' })).route('GET', '/which', () => new Response(answer))
export default app
`
}

/** The same with server options. */
function served(listen: string): string {
  const route = "app.route('GET', '/who', (_, { address }) => new Response(address))"
  return `${configured('x')}\n${route}\nexport const listen = ${listen}\n`
}

async function whoIsSeen(url: string): Promise<string> {
  const headers = { 'x-forwarded-for': '203.0.113.7:4711' }
  return (await fetch(`${url}/who`, { headers })).text()
}

const LISTENS = /listens on (http:\S+)/

describe('sluice start', () => {
  it('finds sluice.config.ts, prints all addresses, receives a signed webhook, and stops at a signal', async () => {
    const program = new Program(folderWith({ 'sluice.config.ts': configured('one') }), ['start', '--port=0'])
    const url = await program.said(LISTENS)
    expect(await program.said(/github +(http:\S+)/)).toBe(`${url}/in/github`)
    expect(await program.said(/health +(http:\S+)/)).toBe(`${url}/healthz`)
    const dashboard = await program.said(/dashboard +(http:\S+)/)
    expect((await fetch(dashboard)).headers.get('content-type')).toContain('text/html')
    const response = await fetch(`${url}/in/github`, { method: 'POST', headers: githubHeaders('{}'), body: '{}' })
    expect(response.status).toBe(202)
    expect(await (await fetch(`${url}/which`)).text()).toBe('one')
    expect(await program.stop()).toBe(0)
    expect(program.text).toContain('sluice is stopping')
  })

  it('waits for its runs even after two different signals, and exits at once after the same signal twice', async () => {
    const slow = configured('slow').replace(
      'export default',
      `app.flow('slow', { on: 'github/push', run: ({ signal }) => {
        console.log('it runs')
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
      } })
      export default`,
    )
    const folder = folderWith({
      'quick.ts': slow.replace("store: 'memory:'", "store: 'memory:', shutdownTimeout: 300"),
      'slow.ts': slow,
    })
    const working = async (file: string): Promise<Program> => {
      const program = new Program(folder, ['start', '--port=0', `--config=${file}`])
      const url = await program.said(LISTENS)
      await fetch(`${url}/in/github`, { method: 'POST', headers: githubHeaders('{}'), body: '{}' })
      await program.said(/(it runs)/)
      return program
    }
    const [quick, stubborn] = await Promise.all([working('quick.ts'), working('slow.ts')])
    expect(await quick.stop('SIGINT', 'SIGTERM')).toBe(0)
    void stubborn.stop('SIGTERM')
    await stubborn.said(/(sluice is stopping)/)
    expect(await stubborn.stop('SIGTERM')).toBe(130)
  })

  it('takes another file, and the port from the environment', async () => {
    const folder = folderWith({ 'other.ts': configured('two') })
    const program = new Program(folder, ['start', '--config=other.ts', '--host=127.0.0.1'], { PORT: '0' })
    expect(await (await fetch(`${await program.said(LISTENS)}/which`)).text()).toBe('two')
  })

  it('uses the server options of the file, and options of the command line override them', async () => {
    const folder = folderWith({ 'sluice.config.ts': served("{ port: 0, trustProxy: ['127.0.0.1'] }") })
    const [asSaid, asAsked] = [
      new Program(folder, ['start'], { PORT: '1' }),
      new Program(folder, ['start', '--trust-proxy=10.0.0.0/8', '--trust-proxy=192.0.2.1'], { PORT: '1' }),
    ]
    expect(await whoIsSeen(await asSaid.said(LISTENS))).toBe('203.0.113.7')
    expect(await whoIsSeen(await asAsked.said(LISTENS))).toBe('127.0.0.1')
  })

  it('trusts each proxy that the command line names', async () => {
    const folder = folderWith({ 'sluice.config.ts': served('{ port: 0 }') })
    const [none, both] = [
      new Program(folder, ['start']),
      new Program(folder, ['start', '--trust-proxy=10.0.0.0/8', '--trust-proxy=127.0.0.1']),
    ]
    expect(await whoIsSeen(await none.said(LISTENS))).toBe('127.0.0.1')
    expect(await whoIsSeen(await both.said(LISTENS))).toBe('203.0.113.7')
  })

  it('serves TLS if the file configures it', async () => {
    const [key, cert] = ['localhost-key.pem', 'localhost-cert.pem'].map(
      (name) => `readFileSync('${fileURLToPath(new URL(name, FIXTURES))}')`,
    )
    const tls = `{ port: 0, tls: { key: ${key}, cert: ${cert} } }`
    const folder = folderWith({ 'sluice.config.ts': `import { readFileSync } from 'node:fs'\n${served(tls)}` })
    expect(await new Program(folder, ['start']).said(/listens on (https:)/)).toBe('https:')
  })

  it.each<readonly [string, Readonly<Record<string, string>>, readonly string[], number, RegExp]>([
    [
      'its listen is invalid',
      { 'sluice.config.ts': served('8787') },
      ['start'],
      1,
      /listen that is not.*\{ port: 8787 \}/,
    ],
    ['its listen has a mistake', { 'sluice.config.ts': served('{ prot: 0 }') }, ['start'], 1, /CONFIG_INVALID.*prot/],
    [
      'the proxy is invalid',
      { 'sluice.config.ts': served('{ port: 0 }') },
      ['start', '--trust-proxy=mine'],
      1,
      /CONFIG_INVALID.*trustProxy/,
    ],
    ['there is no configuration', {}, ['start'], 5, /CONFIG_MISSING.*sluice\.config\.ts/],
    [
      'the file that was named is not there',
      {},
      ['start', '--config=a.ts'],
      5,
      /CONFIG_MISSING.*a\.ts.*after --config/,
    ],
    [
      'it exports no app',
      { 'sluice.config.ts': 'export default 1' },
      ['start'],
      1,
      /CONFIG_INVALID.*export default app/,
    ],
    [
      'it throws',
      { 'sluice.config.ts': 'throw new Error("my own")' },
      ['start'],
      1,
      /CONFIG_INVALID[^]*my own[^]*Correct the file/,
    ],
    [
      'the port is invalid',
      { 'sluice.config.ts': configured('x') },
      ['start', '--port=http'],
      2,
      /--port must be a number; got "http"/,
    ],
    ['the command is unknown', {}, ['begin'], 2, /sluice <command>/],
    ['the option is unknown', {}, ['start', '--prot=1'], 2, /--prot/],
    ['there is an unexpected argument', {}, ['start', 'now'], 2, /now is unexpected/],
  ])('says so and ends when %s', async (_, files, args, code, text) => {
    const program = new Program(folderWith(files), args)
    expect(await program.exit).toBe(code)
    expect(program.text).toMatch(text)
  })

  it('exits if the file exports no app, even if an app in it keeps the process busy', async () => {
    const started = configured('x').replace('export default app', 'await app.start()\nsetInterval(() => {}, 1_000)')
    const program = new Program(folderWith({ 'sluice.config.ts': started }), ['start', '--port=0'])
    expect(await program.exit).toBe(1)
    expect(program.text).toMatch(/CONFIG_INVALID.*export default app/)
  })

  it('exits at SIGTERM while the file is still loading', async () => {
    const endless = "console.log('it loads')\nawait new Promise(() => setInterval(() => {}, 1_000))"
    const program = new Program(folderWith({ 'sluice.config.ts': endless }), ['start', '--port=0'])
    await program.said(/(it loads)/)
    expect(await program.stop()).not.toBe(0)
  })

  it('prints its usage and its version', async () => {
    const [help, version] = [new Program(tmpdir(), ['--help']), new Program(tmpdir(), ['version'])]
    expect([await help.exit, await version.exit]).toEqual([0, 0])
    expect(help.text).toContain('--config=FILE')
    expect(version.text).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('sluice dev', () => {
  it('restarts when a file changes, survives a broken file, and stops at a signal', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('one') })
    const program = new Program(folder, ['dev', '--port=0'])
    expect(await (await fetch(`${await program.said(LISTENS)}/which`)).text()).toBe('one')
    writeFileSync(join(folder, 'sluice.config.ts'), 'const = nonsense')
    await program.said(/(waiting for a change)/)
    writeFileSync(join(folder, 'sluice.config.ts'), configured('two'))
    expect(await (await fetch(`${await program.said(LISTENS, 2)}/which`)).text()).toBe('two')
    writeFileSync(join(folder, '.env'), 'A=1')
    expect(await (await fetch(`${await program.said(LISTENS, 3)}/which`)).text()).toBe('two')
    expect(await program.stop()).toBe(0)
  })

  it('restarts each time a file is replaced by a new one with the same name, as editors save it', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('1') })
    const program = new Program(folder, ['dev', '--port=0'])
    await program.said(LISTENS)
    for (const answer of ['2', '3', '4']) {
      writeFileSync(join(folder, 'sluice.config.ts.tmp'), configured(answer))
      renameSync(join(folder, 'sluice.config.ts.tmp'), join(folder, 'sluice.config.ts'))
      const url = await program.said(LISTENS, Number(answer))
      expect(await (await fetch(`${url}/which`)).text()).toBe(answer)
    }
  })

  it('restarts when a file changes in a folder that was created later, also after this folder was replaced', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('1') })
    const program = new Program(folder, ['dev', '--port=0'])
    await program.said(LISTENS)
    mkdirSync(join(folder, 'flows', 'deep'), { recursive: true })
    writeFileSync(join(folder, 'flows', 'deep', 'one.ts'), 'export {}')
    await program.said(LISTENS, 2)
    rmSync(join(folder, 'flows'), { recursive: true })
    mkdirSync(join(folder, 'flows', 'deep'), { recursive: true })
    writeFileSync(join(folder, 'flows', 'deep', 'two.ts'), 'export {}')
    await program.said(LISTENS, 3)
    writeFileSync(join(folder, 'flows', 'deep', 'two.ts'), 'export const x = 1')
    await program.said(LISTENS, 4)
  })

  it('does not restart for files that no app reads', async () => {
    const folder = folderWith({ 'sluice.config.ts': configured('1') })
    mkdirSync(join(folder, 'node_modules'))
    const program = new Program(folder, ['dev', '--port=0'])
    await program.said(LISTENS)
    writeFileSync(join(folder, 'node_modules', 'index.js'), '')
    writeFileSync(join(folder, 'notes.md'), '')
    writeFileSync(join(folder, 'last.json'), '{}')
    expect(await program.said(/sluice dev: (\S+) changed/)).toBe('last.json')
  })

  it('passes its options on, including a repeated option', async () => {
    const folder = folderWith({ 'sluice.config.ts': served('{ port: 0 }') })
    const program = new Program(folder, ['dev', '--trust-proxy=10.0.0.0/8', '--trust-proxy=127.0.0.1'])
    expect(await whoIsSeen(await program.said(LISTENS))).toBe('203.0.113.7')
  })
})
