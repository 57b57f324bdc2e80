// Acknowledged data is on the disk: no call returns before the log is synced, and a disk that fails ends the work.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/errors.ts'
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts'
import { LogSync } from '../../src/store/sqlite/write-ahead-log.ts'
import { ownFolder } from '../temporary-folder.ts'

interface Scene {
  readonly commit: GroupCommit
  readonly rows: () => number
  /** The number of syncs. */
  readonly syncs: () => number
  /** Ends the current sync with this result. */
  readonly end: (error?: Error) => Promise<void>
  write(n: number): Promise<number>
  /** SQLite reports a full disk beyond so many pages. */
  limitPages(most: number): void
  insertBytes(length: number): void
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function scene(makeRoom: (db: DatabaseSync) => boolean = () => false): Scene {
  const db = new DatabaseSync(':memory:')
  db.exec('create table t (n integer)')
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = []
  let syncs = 0
  const commit = new GroupCommit({
    db,
    file: 'f',
    readOnly: false,
    tables: { hasDeferred: () => false, flush: () => {}, beforeCommit: () => {}, afterTransaction: () => {} },
    begun: () => {},
    onCommitted: () => {},
    makeRoom: () => makeRoom(db),
    sync: () => {
      syncs++
      return new Promise<void>((resolve, reject) => void ends.push({ resolve, reject }))
    },
    close: async () => db.close(),
  })
  const insert = db.prepare('insert into t (n) values (?)')
  return {
    commit,
    rows: () => Number(db.prepare('select count(*) as n from t').get()?.['n']),
    syncs: () => syncs,
    end: async (error) => {
      const end = ends.shift()
      if (error === undefined) end?.resolve()
      else end?.reject(error)
      await turn()
    },
    write: (n) => commit.write(() => (insert.run(n), n)),
    limitPages: (most) => db.exec(`pragma max_page_count = ${most}`),
    insertBytes: (length) => db.exec(`insert into t (n) values (zeroblob(${length}))`),
  }
}

async function stateOf(promise: Promise<unknown>): Promise<'open' | 'answered' | 'refused'> {
  const open = Symbol('open')
  const first = await Promise.race([
    promise.then(
      () => 'answered' as const,
      () => 'refused' as const,
    ),
    Promise.resolve(open),
  ])
  return first === open ? 'open' : first
}

describe('the sync', () => {
  it('comes before the reply', async () => {
    const t = scene()
    const one = t.write(1)
    await turn()
    expect([t.rows(), t.syncs(), await stateOf(one)]).toEqual([1, 1, 'open'])
    await t.end()
    expect(await one).toBe(1)
  })

  it('is one for all calls that arrive during a sync, whose commit waits for it', async () => {
    const t = scene()
    const first = t.write(1)
    await turn()
    const later = [2, 3, 4].map((n) => t.write(n))
    await turn()
    expect([t.rows(), t.syncs()]).toEqual([1, 1])
    await t.end()
    expect(await first).toBe(1)
    await turn()
    expect([t.rows(), t.syncs(), await stateOf(later[2] as Promise<number>)]).toEqual([4, 2, 'open'])
    await t.end()
    expect(await Promise.all(later)).toEqual([2, 3, 4])
  })

  it('that fails rejects all calls that waited for it, and all later ones', async () => {
    const t = scene()
    const one = t.write(1)
    one.catch(() => {})
    await turn()
    await t.end(new SluiceError('STORE_SYNC_FAILED', 'The disk did not take it.'))
    await expect(one).rejects.toMatchObject({ code: 'STORE_SYNC_FAILED' })
    await expect(t.write(2)).rejects.toMatchObject({ code: 'STORE_SYNC_FAILED' })
    expect([t.rows(), t.syncs()]).toEqual([1, 1])
  })

  it('is awaited by close, and so are the syncs of earlier calls', async () => {
    const t = scene()
    const one = t.write(1)
    await turn()
    const two = t.write(2)
    const closing = t.commit.close()
    await turn()
    expect(t.rows()).toBe(1)
    await t.end()
    await turn()
    expect([await one, t.rows(), await stateOf(two), await stateOf(closing)]).toEqual([1, 2, 'open', 'open'])
    await t.end()
    expect(await two).toBe(2)
    await closing
    await expect(t.write(3)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('is not made for a single call that failed', async () => {
    const t = scene()
    const bad = t.commit.write(() => {
      throw new Error('planted')
    })
    await expect(bad).rejects.toMatchObject({ code: 'STORE_FAILED' })
    expect(t.syncs()).toBe(0)
  })
})

function fill(t: Scene): Promise<unknown> {
  t.limitPages(2)
  return t.commit.write(() => t.insertBytes(20_000))
}

function exceedMaxBytes(): never {
  throw new SluiceError('STORE_FULL', 'maxBytes')
}

describe('a commit that does not fit on the disk', () => {
  it('is made once more if the log could be written back, and refused if not', async () => {
    const made = scene((db) => (db.exec('pragma max_page_count = 100'), true))
    const one = fill(made)
    await turn()
    await made.end()
    await one
    expect([made.rows(), made.syncs()]).toEqual([1, 1])
    const refused = scene()
    await expect(fill(refused)).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect([refused.rows(), refused.syncs()]).toEqual([0, 0])
  })

  it('is refused the second time, and is not tried again because of maxBytes', async () => {
    let asked = 0
    const t = scene(() => ++asked > 0)
    await expect(fill(t)).rejects.toMatchObject({ code: 'STORE_FULL' })
    await expect(t.commit.write(exceedMaxBytes)).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect([asked, t.rows()]).toEqual([1, 0])
  })
})

describe('the log', () => {
  it('is synced at its actual path; a missing one is an error that names it', async () => {
    const folder = ownFolder()
    const file = join(folder, 'a.db')
    await expect(new LogSync(file).sync()).rejects.toMatchObject({ code: 'STORE_SYNC_FAILED' })
    const db = new DatabaseSync(file)
    db.exec('pragma journal_mode = wal; create table t (n)')
    const log = new LogSync(file)
    await log.sync()
    await log.close()
    await log.close()
    db.close()
  })
})
