// An index that is written late has the same content as a plain list after any changes, rolled-back commits and
// starts after a crash.
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { laneId } from '../../src/model/identity.ts'
import { WriteBehindIndex } from '../../src/store/sqlite/write-behind-index.ts'
import { number, Statements, text } from '../../src/store/sqlite/statements.ts'

const NAMES = Array.from({ length: 300 }, (_, n) => laneId('flow', `key ${n}`))
/** Every fourth entry writes a range. */
const ROUND = 1_024

type Step =
  /** `back`: how long before its arrival the number was drawn. */
  | { readonly kind: 'add'; readonly name: number; readonly count: number; readonly back: number }
  | { readonly kind: 'remove' | 'put again'; readonly at: number }
  | { readonly kind: 'pass'; readonly count: number }
  | { readonly kind: 'commit' | 'undo' | 'crash' }

const someName = fc.nat(NAMES.length - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      name: someName,
      count: fc.integer({ min: 1, max: 200 }),
      back: fc.constantFrom(0, 0, 1, 1_500),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('remove' as const, 'put again' as const), at: fc.nat(2_000) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), count: fc.integer({ min: 1, max: 300 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('commit' as const, 'undo' as const, 'crash' as const) }) },
)

class Scene {
  readonly db = new DatabaseSync(':memory:')
  sql = new Statements(this.db)
  index: WriteBehindIndex<string>
  known = new Map<number, string>()
  #committed = new Map<number, string>()
  #drawn = 100_000

  constructor() {
    this.db.exec(readFileSync(new URL('../../src/store/sqlite/migrations/0001.sql', import.meta.url), 'utf8'))
    this.db.exec(`insert into meta (name, value) values ('listed', 0); begin`)
    this.index = this.#opened()
  }

  #opened(): WriteBehindIndex<string> {
    return new WriteBehindIndex(this.sql, {
      insert: 'insert or ignore into lane_runs (lane, run)',
      keyOf: (lane) => lane,
      round: ROUND,
      since: 'listed',
      unwritten: 'select n, lane from runs where n >= ? and length(lane) = 22 order by n',
    })
  }

  do(one: Step): void {
    switch (one.kind) {
      case 'add':
        for (let n = 0; n < one.count; n++)
          this.#add(NAMES[(one.name + n) % NAMES.length] ?? '', Math.round((this.#drawn += 3) - 3 * one.back))
        return
      case 'remove': {
        const found = [...this.known][one.at % Math.max(1, this.known.size)]
        if (found === undefined) return
        const [n, name] = found
        this.known.delete(n)
        this.index.remove(name, n)
        this.sql.run('delete from lane_runs where lane = ? and run = ?', name, n)
        this.sql.run('delete from runs where n = ?', n)
        return
      }
      case 'put again': {
        const found = [...this.known][one.at % Math.max(1, this.known.size)]
        // As a purge does for each event that it removes from a run.
        if (found !== undefined) for (let times = 0; times < 5; times++) this.index.add(found[1], found[0])
        return
      }
      case 'pass':
        for (let n = 0; n < one.count; n++) this.index.advance((this.#drawn += 3))
        return
      case 'commit':
        return this.#end('committed')
      case 'undo':
        return this.#end('rolled-back')
      case 'crash':
        this.#end('rolled-back')
        this.sql = new Statements(this.db)
        this.index = this.#opened()
    }
  }

  #add(name: string, n: number): void {
    if (this.known.has(n)) return
    this.known.set(n, name)
    this.sql.run(
      `insert into runs (n, lane, flow, key, started, ended, events) values (?, ?, '', '', 0, 0, '')`,
      n,
      name,
    )
    this.index.add(name, n)
  }

  #end(how: 'committed' | 'rolled-back'): void {
    if (how === 'committed') {
      this.sql.flush()
      this.#committed = new Map(this.known)
    } else {
      this.sql.discardBatched()
      this.known = new Map(this.#committed)
    }
    this.db.exec(how === 'committed' ? 'commit' : 'rollback')
    this.index.afterTransaction(how)
    this.db.exec('begin')
  }

  check(): void {
    const found = new Set<string>()
    for (const [name, n] of this.sql.all('select lane, run from lane_runs')) found.add(`${text(name)} ${number(n)}`)
    for (const name of NAMES) for (const n of this.index.find(name)) found.add(`${name} ${n}`)
    expect([...found].toSorted()).toEqual(Array.from(this.known, ([n, name]) => `${name} ${n}`).toSorted())
  }

  get unlisted(): number {
    return number(
      this.sql.get(`select count(*) from runs where n >= (select value from meta where name = 'listed')`)?.[0],
    )
  }
}

it('has the same content as a plain list', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
      const scene = new Scene()
      for (const one of steps) {
        scene.do(one)
        scene.check()
      }
    }),
    { numRuns: 200 },
  )
})

it('has few unwritten entries, also if nearly all entries are removed early', () => {
  const scene = new Scene()
  for (let round = 0; round < 20; round++) {
    scene.do({ kind: 'add', name: round % NAMES.length, count: 400, back: 0 })
    scene.do({ kind: 'commit' })
    expect(scene.unlisted).toBeLessThanOrEqual(3 * ROUND)
  }
  scene.do({ kind: 'add', name: 0, count: 1, back: 0 })
  scene.do({ kind: 'pass', count: 2 * ROUND })
  scene.do({ kind: 'commit' })
  expect(scene.unlisted).toBe(0)
  // And the next entries wait as usual.
  scene.do({ kind: 'add', name: 0, count: 1, back: 0 })
  expect(scene.index.find(NAMES[0] ?? '')).toHaveLength(1)
})

it('has few unwritten entries, also if some arrive ever later than they were drawn', () => {
  const scene = new Scene()
  let most = 0
  for (let n = 0; n < 12 * ROUND; n += 16) {
    scene.do({ kind: 'add', name: n % NAMES.length, count: 15, back: 0 })
    scene.do({ kind: 'add', name: (7 * n) % NAMES.length, count: 1, back: ((n * 31) % (8 * ROUND)) + 1 / 3 })
    scene.do({ kind: 'commit' })
    most = Math.max(most, scene.unlisted)
  }
  expect(most).toBeLessThanOrEqual(3 * ROUND)
  scene.check()
  scene.do({ kind: 'crash' })
  scene.check()
})

it('entries that were written, and added again in a commit that is rolled back, are in memory as before', () => {
  const scene = new Scene()
  scene.do({ kind: 'add', name: 0, count: NAMES.length, back: 0 })
  scene.do({ kind: 'commit' })
  // Half of the ranges are written, and some more by the entries that are added again.
  scene.do({ kind: 'pass', count: ROUND / 2 })
  for (const [n, name] of scene.known) scene.index.add(name, n)
  scene.do({ kind: 'undo' })
  scene.check()
})

it('an entry that was drawn long ago, and arrives when newer ones are written, is known after a crash', () => {
  const scene = new Scene()
  scene.do({ kind: 'pass', count: 3 * ROUND })
  scene.do({ kind: 'add', name: 7, count: 1, back: 2 * ROUND })
  scene.do({ kind: 'commit' })
  scene.do({ kind: 'crash' })
  scene.check()
})

it('a name with very many entries is written in several steps', () => {
  const scene = new Scene()
  const [name = ''] = NAMES
  for (let n = 0; n < 3 * ROUND; n++) {
    scene.index.add(name, 10_000 + n)
    expect(scene.index.find(name).length).toBeLessThan(ROUND / 16)
  }
})

it('memory is filled, also if all entries have one name', () => {
  const scene = new Scene()
  const [name = ''] = NAMES
  for (let n = 0; n < 50_000; n++) scene.sql.runBatched(RUN, [n, name, '', '', 0, 0, ''])
  scene.do({ kind: 'commit' })
  scene.do({ kind: 'crash' })
  expect(scene.index.find(name)).toHaveLength(50_000)
})

const RUN = 'insert into runs (n, lane, flow, key, started, ended, events)'
