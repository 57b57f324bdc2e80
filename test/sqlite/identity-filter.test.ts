// The filter before the index of identities: it never denies one that is there, it spares most others the question from the first
// arrival after a start on, and no single commit waits for all of the index to be looked through.
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { IdentityFilter } from '../../src/store/sqlite/identity-filter.ts'
import { Statements } from '../../src/store/sqlite/statements.ts'

const WIDTH = 2 ** 40
/** Neighbours differ in their bits. */
const STEP = 2 ** 25

/** `counts`: how many identities each range has. */
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

it('knows a range from the first question on, and asks for it once', () => {
  const { filter, looks } = opened(3, 0)
  expect([0, 1, 2, 3, 4].map((n) => filter.mayContain(n * STEP))).toEqual([true, true, true, false, false])
  expect(filter.mayContain(WIDTH)).toBe(false)
  expect(looks()).toBe(2)
})

it('begins no further look in a commit that has seen a full range of rows; what it has not looked at may be there', () => {
  const { filter, looks } = opened(8_000, 8_000, 8_000)
  const absent = (range: number): boolean => filter.mayContain(range * WIDTH + 9_000 * STEP)
  expect([absent(0), absent(1), absent(2)]).toEqual([false, false, true])
  filter.afterTransaction('committed')
  expect([absent(0), absent(1), absent(2)]).toEqual([false, false, false])
  expect(looks()).toBe(3)
})

it('asks the index itself where a range has too many', () => {
  const { filter } = opened(8_193)
  expect(filter.mayContain(30_000 * STEP)).toBe(true)
})

it('hears of what is written, and forgets all of it with a commit that is undone', () => {
  const { filter, looks } = opened(0)
  expect(filter.mayContain(5 * STEP)).toBe(false)
  filter.add(5 * STEP)
  expect(filter.mayContain(5 * STEP)).toBe(true)
  filter.afterTransaction('rolled-back')
  expect(filter.mayContain(5 * STEP)).toBe(false)
  expect(looks()).toBe(2)
})
