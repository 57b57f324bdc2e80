// The numbers of a transaction grow with its locks.
import { expect, test } from 'vitest'
import { TransactionCounter } from '../../src/store/postgres/counter.ts'
import type { Db } from '../../src/store/postgres/row-cache.ts'

/** A server whose counter is at `next`. */
function counting(next: number): Db {
  const rows: Db['query'] = (_sql, [n] = []) =>
    Promise.resolve(Array.from({ length: Number(n) }, () => [(next += 1_000) - 1_000]))
  return { readOnly: false, query: rows }
}

async function ordinary(db: Db): Promise<TransactionCounter> {
  const numbers = new TransactionCounter()
  await numbers.load(db)
  numbers.resetPass()
  return numbers
}

test('a number that is drawn after more locks is greater than what others drew before', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(db)
  expect(numbers.draw()).toBe(1_000)
  // Another process held the lane that is locked next, and drew a number for it.
  const other = await ordinary(db)
  const theirs = other.draw()
  await numbers.load(db)
  numbers.resetPass()
  expect(numbers.draw()).toBeGreaterThan(theirs)
})

test('there are as many numbers as needed, however often more rows are loaded', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(db)
  const draw = (): readonly number[] => Array.from({ length: 2_500 }, () => numbers.draw())
  for (let passes = 0; draw().some((number) => number < 0); passes++) {
    expect(passes).toBeLessThan(2)
    await numbers.load(db)
    numbers.resetPass()
  }
  await numbers.load(db)
  numbers.resetPass()
  expect(new Set(draw().filter((number) => number > 0)).size).toBe(2_500)
})
