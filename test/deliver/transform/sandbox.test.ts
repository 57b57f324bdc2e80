// Tests the sandbox of transformations, in this thread: what a script sees, and how each hostile script that ends by itself fails.
import { expect, it } from 'vitest'
import { createSandbox } from '../../../src/deliver/transform/sandbox.ts'
import type { ScriptCall, ScriptResult } from '../../../src/deliver/transform/script.ts'
import { HUNGRY, QUICK } from './hostile-scripts.ts'

const run = await createSandbox()
/** The time is out of reach, so the results depend on no machine. */
const LIMITS = { time: 100_000, memory: 32 * 1_024 * 1_024 }

function call(code: string, more: Partial<ScriptCall> = {}): Promise<ScriptResult> {
  return run({
    code,
    input: '[[{"id":"a","data":{"n":1}}],{"delivery":"orders"}]',
    time: 0,
    seed: 1,
    limits: LIMITS,
    ...more,
  })
}

async function returned(code: string, more: Partial<ScriptCall> = {}): Promise<unknown> {
  const { output, failure } = await call(code, more)
  expect(failure).toBeUndefined()
  return output === undefined ? undefined : JSON.parse(output)
}

it('a script gets the events and the context, and returns JSON', async () => {
  expect(await returned('export default (events, context) => [events[0].data, context]')).toEqual([
    { n: 1 },
    { delivery: 'orders' },
  ])
  expect(await returned('export default () => {}')).toBeUndefined()
  expect(await returned('export default () => null')).toBeUndefined()
})

// `parseOutput` rejects what these return.
const VALID_JSON = new Set([
  'returns a number',
  'returns too much',
  'returns deep data',
  'replaces what it is called with',
])

it.each([...QUICK, ...HUNGRY].filter(({ name }) => !VALID_JSON.has(name)))(
  'a script that $name fails, and leaves the sandbox as it was',
  async ({ code, reason }) => {
    const { failure, output } = await call(code)
    expect(output).toBeUndefined()
    expect(`transform-failed: ${failure?.message} (line ${failure?.line})`).toMatch(reason)
    expect(
      await returned('export default ([{ id }]) => [id, [].concat(JSON.stringify({})), typeof console.log]'),
    ).toEqual(['a', ['{}'], 'function'])
  },
)

it.each([
  ['export const other = 1', /has no default export that is a function/, undefined],
  ['export default 42', /has no default export that is a function/, undefined],
  ['export default () => {\n  let x = ;\n}', /^SyntaxError: unexpected token in expression: ';'$/, 2],
  ['\n\nthrow new TypeError("at the top")\nexport default () => {}', /^TypeError: at the top$/, 3],
  ['throw 7\nexport default () => {}', /threw outside of its function/, undefined],
  ['await new Promise(() => {})\nexport default () => {}', /top-level await never ends/, undefined],
  ['import { readFile } from "node:fs"\nexport default () => {}', /could not load module 'node:fs'/, undefined],
])('code that does not load says why and where: %j', async (code, message, line) => {
  const { input: _, ...check } = { code, input: '', time: 0, seed: 0, limits: LIMITS }
  const { failure } = await run(check)
  expect(failure).toMatchObject({ why: 'threw', message: expect.stringMatching(message) })
  expect(failure?.line).toBe(line)
})

it('a script sees nothing of the machine', async () => {
  const names = 'process require fetch setTimeout setInterval Buffer WebAssembly Worker navigator crypto Atomics std os'
  const code = `export default () => ${JSON.stringify(names.split(' '))}.filter((name) => name in globalThis)`
  expect(await returned(code)).toEqual([])
})

it('the same call gives the same result, and another seed gives other random numbers', async () => {
  const code = `export default () => [Date.now(), new Date(2026, 0).toISOString(), Math.random(), performance.now()]`
  const more = { time: Date.UTC(2026, 0, 2), seed: 7 }
  const first = await returned(code, more)
  expect(first).toMatchObject([more.time, '2026-01-01T00:00:00.000Z', expect.any(Number), expect.any(Number)])
  expect(await returned(code, more)).toEqual(first)
  expect(await returned('export default () => Math.random()', { seed: 8 })).not.toBe((first as unknown[])[2])
})

it('a script has no memory from one call to the next', async () => {
  const code = `globalThis.calls = (globalThis.calls ?? 0) + 1; Array.prototype.seen = (Array.prototype.seen ?? 0) + 1
    export default () => [globalThis.calls, [].seen]`
  expect(await returned(code)).toEqual([1, 1])
  expect(await returned(code)).toEqual([1, 1])
})

it('the console has at most 100 lines of 1,000 characters', async () => {
  const code = `export default () => {
    console.log('one', { two: 2 }, [3], new TypeError('four'), undefined, 5n)
    for (let n = 0; n < 200; n++) console.error('x'.repeat(5000))
  }`
  const { console: lines } = await call(code)
  expect(lines[0]).toBe('one {"two":2} [3] TypeError: four undefined 5')
  expect(lines).toHaveLength(100)
  expect(Math.max(...lines.map(({ length }) => length))).toBe(1_000)
})

it('what a script wrote before it failed is kept', async () => {
  const { console: lines, failure } = await call(`export default () => { console.log('here'); null.x }`)
  expect(lines).toEqual(['here'])
  expect(failure).toMatchObject({ why: 'threw', line: 1 })
})
