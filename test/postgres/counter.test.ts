// The numbers of a process grow, in any order in which its transactions end and return unused numbers.
import { expect, test } from 'vitest'
import { TransactionCounter, CounterReserve } from '../../src/store/postgres/counter.ts'
import type { Db } from '../../src/store/postgres/row-cache.ts'

/** A server whose counter is at `next`. */
function counting(next: number): Db {
  const rows: Db['query'] = (_sql, [n] = []) =>
    Promise.resolve(Array.from({ length: Number(n) }, () => [(next += 1_000) - 1_000]))
  return { readOnly: false, query: rows }
}

async function ordinary(reserve: CounterReserve, db: Db): Promise<TransactionCounter> {
  const numbers = new TransactionCounter(reserve, false)
  await numbers.load(db)
  numbers.resetPass()
  return numbers
}

test('a number that an earlier transaction returns is not used after one that a later transaction returned', async () => {
  const [reserve, db] = [new CounterReserve(), counting(1_000)]
  const earlier = await ordinary(reserve, db)
  const later = await ordinary(reserve, db)
  expect([earlier.draw(), later.draw()]).toEqual([1_000, 2_000])
  later.returnUnused()
  const guess = new TransactionCounter(reserve, true)
  expect(guess.draw()).toBe(2_001)
  earlier.returnUnused()
  expect(guess.draw()).toBe(2_002)
})

test('neither is it used after numbers that were fetched together with it', async () => {
  const [reserve, db] = [new CounterReserve(), counting(1_000)]
  const guess = new TransactionCounter(reserve, true)
  // The reserve is empty; from now on it is refilled.
  expect(guess.draw()).toBeLessThan(0)
  const transaction = await ordinary(reserve, db)
  expect([transaction.draw(), guess.draw()]).toEqual([1_000, 2_000])
  transaction.returnUnused()
  expect(guess.draw()).toBe(2_001)
})

test('a returned number is used before numbers that were fetched later', async () => {
  const [reserve, db] = [new CounterReserve(), counting(1_000)]
  const guess = new TransactionCounter(reserve, true)
  guess.draw()
  const transaction = await ordinary(reserve, db)
  transaction.draw()
  transaction.returnUnused()
  expect([guess.draw(), guess.draw()]).toEqual([1_001, 1_002])
})

test('a number that is drawn after more locks is greater than what others drew before', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(new CounterReserve(), db)
  expect(numbers.draw()).toBe(1_000)
  // Another process held the lane that is locked next, and drew a number for it.
  const other = await ordinary(new CounterReserve(), db)
  const theirs = other.draw()
  await numbers.load(db)
  numbers.resetPass()
  expect(numbers.draw()).toBeGreaterThan(theirs)
})

test('there are as many numbers as needed, however often more rows are loaded', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(new CounterReserve(), db)
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
