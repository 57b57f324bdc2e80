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
  const first = await start('--play', '--port=0', '--seconds=3', store).ended
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toContain('All checks held.')
  const waiting = /(\d+) waiting \+/.exec(first.out)?.[1]
  const second = await start('--play', '--port=0', '--seconds=1', store).ended
  expect(second).toMatchObject({ code: 0, err: '' })
  expect(second.out).toContain(`+ ${waiting} from before`)
})

it('stops on Ctrl-C in the middle of a run, with the summary', async () => {
  const demo = start('--play', '--port=0', '--forever')
  await demo.printed('claimed')
  demo.interrupt()
  // Handed on by everybody who started it, one Ctrl-C arrives more than once.
  demo.interrupt()
  const ended = await demo.ended
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toContain('given back')
  expect(ended.out).toContain('All checks held.')
})

it('serves: the command it prints sends a signed webhook, which is seen to run', async () => {
  const demo = start('--port=0')
  const out = await demo.printed("-d '")
  const command = /curl -i (\S+) \\\n([\s\S]*?)  -d '(.*)'/.exec(out)
  const headers = Object.fromEntries(
    [...(command?.[2] ?? '').matchAll(/-H '([^:]+): (.*)'/g)].map(([, name = '', value = '']) => [name, value]),
  )
  const url = command?.[1] ?? ''
  const response = await fetch(url, { method: 'POST', headers, body: command?.[3] ?? '' })
  expect(response.status).toBe(202)
  expect((await fetch(url, { method: 'POST', headers, body: '{"type":"forged"}' })).status).toBe(401)
  expect((await fetch(new URL('/healthz', url))).status).toBe(200)
  await demo.printed('you')
  await demo.printed('done')
  demo.interrupt()
  expect(await demo.ended).toMatchObject({ code: 0, err: '' })
})

it('refuses options that make no sense, and says which there are', async () => {
  const { code, out, err } = await start('--seconds=soon').ended
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain('--seconds=soon is not a number above 0.')
  expect(err).toContain('npm start -- [options]')
})

it('says what is wrong with a store that cannot be opened', async () => {
  const { code, err } = await start('--store=paper:').ended
  expect(code).toBe(1)
  expect(err).toContain('STORE_UNKNOWN')
})
