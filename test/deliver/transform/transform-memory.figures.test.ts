// Measures what 1,000 hostile transformations in a row leave in the memory of the process.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import { ScriptThreads } from '../../../src/deliver/transform/threads.ts'
import { HUNGRY, QUICK, SLOW } from './hostile-scripts.ts'

const MEGABYTE = 1_024 * 1_024
/** The loops end sooner than those of an app, because only the number of scripts counts here. */
const LIMITS = { time: 200, memory: 32 * MEGABYTE }

/** Without garbage of this thread. That of the others ends with them. */
function residentMemory(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage.rss()
}

it('1,000 hostile transformations leave no more memory behind than two of them may use', async () => {
  const threads = new ScriptThreads({ limits: LIMITS })
  onTestFinished(() => threads.close())
  const scripts = [...QUICK, ...HUNGRY, ...QUICK, ...SLOW.slice(0, 2), ...QUICK, ...QUICK]
  const runAll = async (times: number): Promise<number> => {
    let failed = 0
    const calls = Array.from({ length: times }, async (_, n) => {
      const { code } = scripts[n % scripts.length] ?? { code: '' }
      const { failure } = await threads.run(`endpoint ${n % 50}`, { code, input: '[[],{}]', time: 0, seed: n })
      if (failure !== undefined) failed++
    })
    await Promise.all(calls)
    return failed
  }
  // The first ones load code and grow the heaps of the threads, which is not a cost of the others.
  await runAll(200)
  const before = residentMemory()
  let most = before
  const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 10)
  const failed = await runAll(1_000)
  clearInterval(watch)
  const [left, peak] = [residentMemory() - before, most - before].map((bytes) => Math.round(bytes / MEGABYTE))
  console.log(`1,000 hostile transformations: ${left} MB left behind, ${peak} MB more at the peak, ${failed} failures`)
  // Instances that leaked would leave 1.3 GB. What V8 and malloc keep for the next scripts varies by tens of megabytes.
  expect(left).toBeLessThan(64)
  // Two threads, each with one instance of at most three times its limit, and what V8 has not yet collected.
  expect(peak).toBeLessThan(400)
}, 1_800_000)
