// Tests commands that run for a while or ask questions: tail, work --once, a long replay, confirmations, and shell completion.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Progress } from '../../src/cli/progress.ts'
import { serverEvents, type ServerEvent } from '../../src/cli/commands/tail.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { APP, folderWith, MAIN, Program, run, serve, type Ran } from './commands-rig.ts'

const FILES = { 'sluice.config.ts': APP }

describe('sluice tail', () => {
  it('prints changes, of one flow on request, and continues where it was after the server was away', async () => {
    const folder = folderWith(FILES)
    const first = await serve(folder)
    const port = Number(new URL(first.url).port)
    const env = { SLUICE_URL: first.url }
    const all = new Program(folder, ['tail', '--verbose'], env)
    const one = new Program(folder, ['tail', '--flow=does', '--json', '--verbose'], env)
    await Promise.all([all.said(/(Watching)/), one.said(/(Watching)/)])
    await first.publish('late', 'ada')
    await first.publish('order', 'ada')
    await all.said(/event +shop \S+ order (→ does ada)/)
    await all.said(/claimed +(does ada)/)
    await all.said(/settled +(does ada)/)
    const claimed = JSON.parse(await one.said(/(\{.*"claimed".*\})/)) as unknown
    expect(claimed).toMatchObject({ kind: 'claimed', flow: 'does' })
    const told = one.text.split('\n').filter((line) => line.startsWith('{'))
    expect(new Set(told.map((line) => (JSON.parse(line) as { flow: string }).flow))).toEqual(new Set(['does']))
    await first.program.stop()
    await all.said(/(connection was lost)/)
    const again = await serve(folder, port)
    await all.said(/(Reconnected)/)
    await again.publish('bad', 'bob')
    await all.said(/claimed +(fails)/)
    expect(await all.stop()).toBe(0)
  })

  it('applies backpressure: it reads no more from the server than its own reader reads', async () => {
    const change = JSON.stringify({ at: 0, kind: 'event', flow: '', id: 'x'.repeat(10_000), detail: '' })
    const event = `id: a-1\nevent: event\ndata: ${change}\n\n`
    const sent = Promise.withResolvers<'all'>()
    const stood = Promise.withResolvers<'some'>()
    const flood = async (response: ServerResponse): Promise<void> => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const closed = once(response, 'close')
      for (let n = 0; n < 10_000; n++) {
        if (response.write(event)) continue
        const stands = setTimeout(stood.resolve, 2_000, 'some' as const)
        await Promise.race([once(response, 'drain'), closed])
        clearTimeout(stands)
      }
      sent.resolve('all')
    }
    const server = createServer((_request, response) => void flood(response)).listen(0, '127.0.0.1')
    onTestFinished(() => server.close().closeAllConnections())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const tail = spawn(process.execPath, [MAIN, 'tail', `--url=${url}`], { cwd: folderWith({}) })
    onTestFinished(() => void tail.kill('SIGKILL'))
    expect(await Promise.race([sent.promise, stood.promise])).toBe('some')
    tail.stdout.resume()
    expect(await sent.promise).toBe('all')
  })

  it('tells the same server where it continues, and exits when its key is no longer accepted', async () => {
    const asked: string[] = []
    let isOpen = true
    const server = createServer(({ headers }, response) => {
      if (!isOpen) return void response.writeHead(401).end('{"code":"KEY_INVALID","detail":"no","fix":"","status":401}')
      asked.push(String(headers['last-event-id'] ?? ''))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const change = JSON.stringify({ at: 0, kind: 'event', flow: '', id: `number ${asked.length}`, detail: '' })
      response.end(`id: era-${asked.length}\nevent: event\ndata: ${change}\n\n`)
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const tail = new Program(folderWith({}), ['tail'], { SLUICE_URL: url })
    await tail.said(/(number 3)/)
    expect(asked.slice(0, 3)).toEqual(['', 'era-1', 'era-2'])
    isOpen = false
    expect(await tail.exit).toBe(4)
  })

  it('exits with the documented code where a key is needed', async () => {
    const server = await serve(folderWith(FILES))
    await server.sluice('keys', 'create', 'one', '--role=operate')
    const ran = await server.sluice('tail')
    expect([ran.code, ran.stderr]).toEqual([4, expect.stringContaining('KEY_MISSING')])
  })

  it('parses events however their bytes are split', async () => {
    const text = ': still there\n\nid: a-1\nevent: event\ndata: {"flow":"ü"}\n\ndata: x\ndata: y\n\n'
    const bytes = Buffer.from(text)
    for (let at = 1; at < bytes.length; at++) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.subarray(0, at))
          controller.enqueue(bytes.subarray(at))
          controller.close()
        },
      })
      const read: ServerEvent[] = []
      for await (const event of serverEvents(body)) read.push(event)
      expect(read).toEqual([
        { id: 'a-1', event: 'event', data: '{"flow":"ü"}' },
        { id: '', event: 'message', data: 'x\ny' },
      ])
    }
  })
})

/** Publishes two events that are due at once, one after the other, and one that waits. */
const WORKING = APP.replace(
  'export default app',
  `app.flow('first', { on: 'begin', run: async ({ publish }) => {
  await new Promise((resolve) => setTimeout(resolve, 300))
  publish({ type: 'more', data: {} })
} })
app.flow('second', { on: 'more', run: async () => { (await import('node:fs')).appendFileSync('ran', 'second ') } })
app.flow('later', { on: 'begin', window: { quiet: '1h' }, run: () => {} })
if (process.env.PUBLISH) {
  await app.publish({ type: 'begin', data: {} })
  await app.stop()
  process.exit(0)
}
export default app`,
).replace("process: 'cli-test'", "process: 'cli-test', log: false")

describe('sluice work --once', () => {
  it('runs what is due and what follows from it, leaves what waits, and exits', async () => {
    const folder = folderWith({ 'sluice.config.ts': WORKING })
    await run(folder, ['flows'], { env: { PUBLISH: '1' } })
    const worked = await run(folder, ['work', '--once'])
    expect([worked.code, worked.stdout]).toEqual([0, expect.stringContaining('2 runs, of which 0 failed.')])
    expect(readFileSync(join(folder, 'ran'), 'utf8')).toBe('second ')
    const again = await run(folder, ['work', '--once', '--json'])
    expect([again.code, again.stdout]).toEqual([0, '{"runs":0,"failed":0}\n'])
    expect((await run(folder, ['lanes', '--flow=later', '--json'])).json).toMatchObject({
      items: [{ state: 'waiting' }],
    })
  })

  it('exits with 1 over a failed run only with --fail', async () => {
    const folder = folderWith({
      'sluice.config.ts': WORKING.replace("publish({ type: 'more'", "throw new Error('no'); publish({ type: 'more'"),
    })
    const due = (): Promise<unknown> => run(folder, ['flows'], { env: { PUBLISH: '1' } })
    await due()
    const failed = await run(folder, ['work', '--once', '--fail'])
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('1 run, of which 1 failed.\n')])
    await due()
    expect((await run(folder, ['work', '--once'])).code).toBe(0)
  })

  it('exits with 1 and says so when it is stopped while something is due', async () => {
    const slow = WORKING.replace(
      'run: async ({ publish }) => {',
      "concurrency: 1, run: async ({ publish }) => { console.log('it runs')",
    )
    const folder = folderWith({ 'sluice.config.ts': slow })
    for (let n = 0; n < 3; n++) await run(folder, ['flows'], { env: { PUBLISH: '1' } })
    const work = new Program(folder, ['work', '--once'])
    await work.said(/(it runs)/)
    expect([await work.stop(), work.text]).toEqual([1, expect.stringMatching(/Stopped while.*due: first/)])
  })

  it('does not wait for events of flows that this app does not have', async () => {
    const folder = folderWith({ 'sluice.config.ts': WORKING })
    await run(folder, ['flows'], { env: { PUBLISH: '1' } })
    writeFileSync(join(folder, 'sluice.config.ts'), WORKING.replaceAll("'first'", "'renamed'"))
    const worked = await run(folder, ['work', '--once'])
    expect([worked.code, worked.stderr]).toEqual([0, expect.stringContaining('first')])
  })
})

interface Shown {
  readonly text: () => string
  readonly progress: Progress
  readonly clock: VirtualClock
}

function shown(isTTY: boolean, from = 0): Shown {
  let text = ''
  const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12))
  const stream = { isTTY, columns: 100, write: (more: string) => (text += more) }
  return { text: () => text, progress: new Progress({ stream, clock, what: 'replay', total: 1_000, from }), clock }
}

describe('progress', () => {
  it('is a bar with rate and remaining time on a terminal', () => {
    const { progress, clock, text } = shown(true)
    clock.advance(10_000)
    progress.update(250)
    expect(text()).toBe(
      '\r\u001b[K[######..................]  replay  25 %  250 of 1,000  25/s  ends 12:00:40Z, in 30 s',
    )
    progress.update(251)
    expect(text()).not.toContain('251')
    clock.advance(10_000)
    progress.update(1_000)
    progress.end()
    expect(text()).toMatch(/\[#{24}\] {2}replay {2}100 % {2}1,000 of 1,000 {2}50\/s {2}took 20 s\n$/)
  })

  it('does not count in the rate what an interrupted command has done', () => {
    const { progress, clock, text } = shown(true, 500)
    clock.advance(10_000)
    progress.update(600)
    expect(text()).toContain('60 %  600 of 1,000  10/s  ends 12:00:50Z, in 40 s')
  })

  it('is a line every few seconds elsewhere', () => {
    const { progress, clock, text } = shown(false)
    for (let second = 1; second <= 11; second++) {
      clock.advance(1_000)
      progress.update(second * 10)
    }
    expect(text().split('\n')).toEqual([
      'replay  5 %  50 of 1,000  10/s  ends 12:01:40Z, in 1 m 35 s',
      'replay  10 %  100 of 1,000  10/s  ends 12:01:40Z, in 1 m 30 s',
      '',
    ])
  })
})

const SCRIPT = '/usr/bin/script'

/** Runs a command on a terminal, where a person types `typed` at the question. */
function typed(
  folder: string,
  env: Readonly<Record<string, string>>,
  command: string,
  answer: string,
): Promise<string> {
  const line = `${process.execPath} ${MAIN} ${command}; echo "ended $?"`
  // A build machine may set further variables that disable colours, so the environment is minimal.
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(SCRIPT, ['-qec', line, '/dev/null'], { cwd: folder, env: { PATH, HOME, ...env } })
  return new Promise((resolve) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      if (!text.includes('[y/N]') && (text + more).includes('[y/N]')) child.stdin.write(`${answer}\n`)
      text += more
    })
    child.once('close', () => resolve(text))
  })
}

describe.skipIf(!existsSync(SCRIPT) && process.env['CI'] !== 'true')('at a terminal', () => {
  it('a command asks and obeys the response', async () => {
    const folder = folderWith(FILES)
    const server = await serve(folder)
    await server.publish('late', 'ada')
    const env = { SLUICE_URL: server.url, NODE_NO_WARNINGS: '1', TERM: 'xterm-256color' }
    const no = await typed(folder, env, 'purge --flow=waits --key=ada', 'n')
    expect(no).toMatch(
      /permanently removes everything of flow "waits" and key "ada" from http[^]*Nothing was done[^]*ended 1/,
    )
    for (const end of ['\u0003', '\u0004']) {
      const ended = await typed(folder, env, 'purge --flow=waits --key=ada --json', end)
      expect(ended).toMatch(/"code":"NOT_CONFIRMED"[^]*ended 1/)
    }
    const yes = await typed(folder, env, 'purge --flow=waits --key=ada', 'y')
    expect(yes).toMatch(/events[^]*1[^]*ended 0/)
    expect(await typed(folder, env, 'flows', '')).toContain('\u001b[1mflow')
    expect(await typed(folder, { ...env, NO_COLOR: '1' }, 'flows', '')).not.toContain('\u001b')
  })
})

it('a command with --yes exits at the first signal, even if its server is slow', async () => {
  const asked = Promise.withResolvers<void>()
  const server = createServer(({ method }, response) => {
    if (method === 'POST') asked.resolve()
    else response.end('{"ok":true}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => server.close().closeAllConnections())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const purge = new Program(folderWith({}), ['purge', '--tenant=x', '--yes', `--url=${url}`])
  onTestFinished(() => void purge.child.kill('SIGKILL'))
  await asked.promise
  await purge.stop()
  expect(purge.child.signalCode).toBe('SIGTERM')
})

describe('sluice completion', () => {
  let script: Promise<Ran> | undefined

  it.each<readonly [string, readonly string[], RegExp]>([
    ['the first word', ['de'], /^dead dev$/],
    ['the third word', ['endpoints', 'token', ''], /^create revoke$/],
    ['what follows it', ['dead', ''], /^list count show retry drop export --flow/],
    ['options', ['dead', 'retry', '--fl'], /^--flow$/],
    ['options behind a word of one’s own', ['dead', 'retry', 'id', '--y'], /^--yes$/],
    ['a shell', ['completion', 'z'], /^zsh$/],
    ['options of what runs the app', ['start', '--p'], /^--port$/],
    ['options of a list that is left out', ['lanes', '--fl'], /^--flow$/],
    ['a command behind an option', ['--verbose', 'dea'], /^dead$/],
    ['a command behind an option that bash takes apart', ['--url', '=', 'http', 'dead', 'co'], /^count$/],
  ])('completes %s in bash', async (_, words, offered) => {
    script ??= run(folderWith({}), ['completion', 'bash'])
    const set = `COMP_WORDS=(sluice ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}`
    const { stdout } = await promisify(execFile)('bash', [
      '-c',
      `${(await script).stdout}\n${set}; _sluice; echo "\${COMPREPLY[*]}"`,
    ])
    expect(stdout.trim()).toMatch(offered)
  })

  it.each(['zsh', 'fish'])('has a script for %s with every command', async (shell) => {
    const { stdout } = await run(folderWith({}), ['completion', shell])
    for (const word of ['run-now', 'doctor', 'revoke', '--detach']) expect(stdout).toContain(word)
  })
})
