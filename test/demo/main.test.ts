// The program as `npm start` runs it: a process of its own, on a real file, that ends by itself or by Ctrl-C.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const main = fileURLToPath(new URL('../../src/demo/main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Started {
  readonly ended: Promise<Ended>
  /** Resolves once it has printed this. */
  printed(text: string): Promise<void>
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
    },
    interrupt: () => child.kill('SIGINT'),
  }
}

it('stops by itself with a summary, and goes on where it stopped', async () => {
  const store = `--store=sqlite:${join(folder, 'kept.db')}`
  const first = await start('--seconds=3', store).ended
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toContain('All checks held.')
  const waiting = /(\d+) waiting \+/.exec(first.out)?.[1]
  const second = await start('--seconds=1', store).ended
  expect(second).toMatchObject({ code: 0, err: '' })
  expect(second.out).toContain(`+ ${waiting} from before`)
})

it('stops within a second on Ctrl-C in the middle of a run, with the summary', async () => {
  const demo = start('--forever')
  await demo.printed('claimed')
  demo.interrupt()
  // Handed on by everybody who started it, one Ctrl-C arrives more than once.
  demo.interrupt()
  const ended = await Promise.race([demo.ended, setTimeout(1_000, undefined)])
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended?.out).toContain('given back')
  expect(ended?.out).toContain('All checks held.')
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
