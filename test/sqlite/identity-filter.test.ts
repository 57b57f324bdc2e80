// The filter before the index of identities: it never misses a stored identity, avoids most lookups from the first event after a
// start on, and never scans the whole index in one commit.
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { IdentityFilter } from '../../src/store/sqlite/identity-filter.ts'
import { Statements } from '../../src/store/sqlite/statements.ts'

const WIDTH = 2 ** 40
/** Neighbouring numbers differ in their bits. */
const STEP = 2 ** 25

/** `counts`: the number of identities in each range. */
function opened(...counts: readonly number[]): { readonly filter: IdentityFilter; readonly looks: () => number } {
  const db = new DatabaseSync(':memory:')
  db.exec('create table identities (h integer not null, event integer not null, primary key (h, event)) without rowid')
  const insert = db.prepare('insert into identities (h, event) values (?, 1)')
  for (const [range, count] of counts.entries()) {
    for (let n = 0; n < count; n++) insert.run(range * WIDTH + n * STEP)
  }
  let looks = 0
  class Counted extends Statements {
    override all(...args: Parameters<Statements['all']>): ReturnType<Statements['all']> {
      looks++
      return super.all(...args)
    }
  }
  return { filter: new IdentityFilter(new Counted(db), WIDTH), looks: () => looks }
}

it('knows a range after the first lookup, and scans it once', () => {
  const { filter, looks } = opened(3, 0)
  expect([0, 1, 2, 3, 4].map((n) => filter.mayContain(n * STEP))).toEqual([true, true, true, false, false])
  expect(filter.mayContain(WIDTH)).toBe(false)
  expect(looks()).toBe(2)
})

it('starts no further scan in a commit that has scanned a full range of rows; unscanned identities may exist', () => {
  const { filter, looks } = opened(8_000, 8_000, 8_000)
  const absent = (range: number): boolean => filter.mayContain(range * WIDTH + 9_000 * STEP)
  expect([absent(0), absent(1), absent(2)]).toEqual([false, false, true])
  filter.afterTransaction('committed')
  expect([absent(0), absent(1), absent(2)]).toEqual([false, false, false])
  expect(looks()).toBe(3)
})

it('uses the index itself where a range has too many identities', () => {
  const { filter } = opened(8_193)
  expect(filter.mayContain(30_000 * STEP)).toBe(true)
})

it('learns of new identities, and forgets those of a commit that is rolled back', () => {
  const { filter, looks } = opened(0)
  expect(filter.mayContain(5 * STEP)).toBe(false)
  filter.add(5 * STEP)
  expect(filter.mayContain(5 * STEP)).toBe(true)
  filter.afterTransaction('rolled-back')
  expect(filter.mayContain(5 * STEP)).toBe(false)
  expect(looks()).toBe(2)
})
