// The program as `npm start` runs it: a process of its own, on a real file, that ends by itself or by Ctrl-C.
import { spawn } from 'node:child_process'
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

function start(...args: readonly string[]): { readonly ended: Promise<Ended>; stop(): void } {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
  })
  return { ended, stop: () => child.kill('SIGINT') }
}

it('stops by itself with a summary, and goes on where it stopped', async () => {
  const store = `--store=sqlite:${join(folder, 'kept.db')}`
  const first = await start('--seconds=4', store).ended
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toContain('All checks held.')
  const waiting = /(\d+) waiting \+/.exec(first.out)?.[1]
  const second = await start('--seconds=2', store).ended
  expect(second).toMatchObject({ code: 0, err: '' })
  expect(second.out).toContain(`+ ${waiting} from before`)
})

it('stops within a second on Ctrl-C, with the summary', async () => {
  const demo = start('--forever')
  await setTimeout(4_500)
  demo.stop()
  const ended = await Promise.race([demo.ended, setTimeout(1_000, undefined)])
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended?.out).toContain('All checks held.')
})

it.each([['--seconds=soon'], ['--seconds=0'], ['--seed=x'], ['--unknown']])(
  'refuses %s, and says how',
  async (option) => {
    const { code, out, err } = await start(option).ended
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(option.slice(2).split('=')[0])
    expect(err).toContain('npm start -- [options]')
  },
)

it('says what is wrong with a store that cannot be opened', async () => {
  const { code, err } = await start('--store=paper:').ended
  expect(code).toBe(1)
  expect(err).toContain('STORE_UNKNOWN')
})
