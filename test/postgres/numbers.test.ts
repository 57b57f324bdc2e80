// Numbers of a process grow, in whatever order its transactions end and give back what they have not used.
import { expect, test } from 'vitest'
import { Numbers, Reserve } from '../../src/store/postgres/numbers.ts'
import type { Db } from '../../src/store/postgres/part.ts'

/** A server whose counter stands at `next`. */
function counting(next: number): Db {
  const rows: Db['rows'] = (_sql, [n] = []) =>
    Promise.resolve(Array.from({ length: Number(n) }, () => [(next += 1_000) - 1_000]))
  return { readOnly: false, rows }
}

async function ordinary(reserve: Reserve, db: Db): Promise<Numbers> {
  const numbers = new Numbers(reserve, false)
  await numbers.load(db)
  numbers.again()
  return numbers
}

test('what an earlier one gives back is not used after what a later one gave', async () => {
  const [reserve, db] = [new Reserve(), counting(1_000)]
  const earlier = await ordinary(reserve, db)
  const later = await ordinary(reserve, db)
  expect([earlier.draw(), later.draw()]).toEqual([1_000, 2_000])
  later.giveBack()
  const guess = new Numbers(reserve, true)
  expect(guess.draw()).toBe(2_001)
  earlier.giveBack()
  expect(guess.draw()).toBe(2_002)
})

test('nor after what was fetched along with it', async () => {
  const [reserve, db] = [new Reserve(), counting(1_000)]
  const guess = new Numbers(reserve, true)
  // There are none yet: from now on some are fetched for it.
  expect(guess.draw()).toBeLessThan(0)
  const transaction = await ordinary(reserve, db)
  expect([transaction.draw(), guess.draw()]).toEqual([1_000, 2_000])
  transaction.giveBack()
  expect(guess.draw()).toBe(2_001)
})

test('what one gives back is used before what was fetched later', async () => {
  const [reserve, db] = [new Reserve(), counting(1_000)]
  const guess = new Numbers(reserve, true)
  guess.draw()
  const transaction = await ordinary(reserve, db)
  transaction.draw()
  transaction.giveBack()
  expect([guess.draw(), guess.draw()]).toEqual([1_001, 1_002])
})

test('what is drawn after more was locked is greater than what others drew before that', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(new Reserve(), db)
  expect(numbers.draw()).toBe(1_000)
  // Somebody else had the lane that is locked next, and a number for it.
  const other = await ordinary(new Reserve(), db)
  const theirs = other.draw()
  await numbers.load(db)
  numbers.again()
  expect(numbers.draw()).toBeGreaterThan(theirs)
})

test('there are as many as are wanted, however often more is loaded', async () => {
  const db = counting(1_000)
  const numbers = await ordinary(new Reserve(), db)
  const draw = (): readonly number[] => Array.from({ length: 2_500 }, () => numbers.draw())
  for (let passes = 0; draw().some((number) => number < 0); passes++) {
    expect(passes).toBeLessThan(2)
    await numbers.load(db)
    numbers.again()
  }
  await numbers.load(db)
  numbers.again()
  expect(new Set(draw().filter((number) => number > 0)).size).toBe(2_500)
})
