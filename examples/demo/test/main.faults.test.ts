// The program as `npm start` runs it: a process of its own, on a real file, that ends by itself or by Ctrl-C.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Started {
  readonly ended: Promise<Ended>
  /** Resolves with all it has printed, once that has this in it. */
  printed(text: string): Promise<string>
  interrupt(): void
}

function start(...args: readonly string[]): Started {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
  })
  return {
    ended,
    async printed(text) {
      while (!out.includes(text)) await once(child.stdout, 'data')
      return out
    },
    interrupt: () => child.kill('SIGINT'),
  }
}

it('stops by itself with a summary, and goes on where it stopped', async () => {
  const store = `--store=sqlite:${join(folder, 'kept.db')}`
  const first = await start('--port=0', '--seconds=3', store).ended
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toContain('All checks held.')
  const waiting = /(\d+) waiting \+/.exec(first.out)?.[1]
  const second = await start('--port=0', '--seconds=1', store).ended
  expect(second).toMatchObject({ code: 0, err: '' })
  expect(second.out).toContain(`+ ${waiting} from before`)
})

it('stops on Ctrl-C in the middle of a run, with the summary', async () => {
  const demo = start('--port=0')
  await demo.printed('claimed')
  demo.interrupt()
  // npm passes a Ctrl-C on, so it arrives more than once.
  demo.interrupt()
  const ended = await demo.ended
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toContain('given back')
  expect(ended.out).toContain('All checks held.')
})

it('prints the dashboard first, and a command that sends a webhook, which then runs', async () => {
  const demo = start('--port=0', '--quiet')
  const out = await demo.printed('Try next')
  expect(out).toMatch(/^ Dashboard {2}(http:\S+\/dashboard)\n/)
  const [, authorization = '', body = '', url = ''] = /curl -H 'authorization: (.*?)' -d (\S+) (\S+)/.exec(out) ?? []
  const post = (headers: Record<string, string>): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body })
  expect((await post({ authorization })).status).toBe(202)
  expect((await post({ authorization: 'Bearer forged' })).status).toBe(401)
  expect((await fetch(new URL('/healthz', url))).status).toBe(200)
  expect(await (await fetch(new URL('/dashboard/', url))).text()).toContain(`<div id="app">`)
  await demo.printed('you')
  await demo.printed('done')
  demo.interrupt()
  expect(await demo.ended).toMatchObject({ code: 0, err: '' })
})

it('says that there is nothing to check if no webhook was received', async () => {
  const { code, out } = await start('--port=0', '--quiet', '--seconds=0.1').ended
  expect(code).toBe(0)
  expect(out).toContain('No webhook was received, so there is nothing to check.')
  expect(out).not.toContain('All checks held')
})

it('rejects a wrong option, and prints the usage', async () => {
  const { code, out, err } = await start('--seconds=soon').ended
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain('--seconds must be a number above 0; got soon.')
  expect(err).toContain('npm start -- [options]')
})

it('prints why a store cannot be opened', async () => {
  const { code, err } = await start('--store=paper:').ended
  expect(code).toBe(1)
  expect(err).toContain('STORE_UNKNOWN')
})
