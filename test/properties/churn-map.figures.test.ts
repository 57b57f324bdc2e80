// Measures the memory of a churn map: it is reused, and little of it remains.
import { expect, it } from 'vitest'
import { ChurnMap } from '../../src/churn-map.ts'
import { garbageCollector } from './garbage-collector.ts'

const CROWD = 200_000
const collect = garbageCollector()

function heapAfterCollecting(): number {
  collect()
  return process.memoryUsage().heapUsed
}

it('two million entries that come and go leave under 4 MB, and 200,000 at once under 1 MB', () => {
  const busy = new ChurnMap<number, { readonly n: number }>()
  const before = heapAfterCollecting()
  for (let n = 0; n < 2_000_000; n++) {
    busy.set(n, { n })
    busy.delete(n - 100)
  }
  expect(heapAfterCollecting() - before).toBeLessThan(4_000_000)
  for (let n = 0; n < CROWD; n++) busy.set(n, { n })
  for (let n = 0; n < CROWD; n++) busy.delete(n)
  for (let n = 1_999_900; n < 2_000_000; n++) busy.delete(n)
  expect(busy.size).toBe(0)
  expect(heapAfterCollecting() - before).toBeLessThan(1_000_000)
})
