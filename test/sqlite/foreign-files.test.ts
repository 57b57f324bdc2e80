// A file that is not a Sluice store, or has a newer schema, is rejected with a code that says so, and stays unchanged to the last bit.
import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { OpenStoreOptions } from '../../src/store/open.ts'
import { connect, event, freshFile, freshFolder, hashOf, open, send } from './scratch.ts'

async function refused(file: string, code: string, options: OpenStoreOptions = {}): Promise<void> {
  const before = [hashOf(file), statSync(file).mtimeMs]
  await expect(open(file, options)).rejects.toMatchObject({
    code,
    message: expect.stringContaining(file) as string,
  })
  expect([hashOf(file), statSync(file).mtimeMs]).toEqual(before)
}

const contents: Readonly<Record<string, Uint8Array>> = {
  'a short text': Buffer.from('hello'),
  'a long text': Buffer.from('All work and no play. '.repeat(2_000)),
  'zeros that are no pages': Buffer.alloc(5_000),
  'the header of a database and then nothing like one': Buffer.concat([
    Buffer.from('SQLite format 3\0'),
    Buffer.alloc(9_000, 7),
  ]),
}

describe('not a database', () => {
  for (const [name, bytes] of Object.entries(contents)) {
    it(`${name} is rejected and unchanged`, async () => {
      const file = freshFile()
      writeFileSync(file, bytes)
      await refused(file, 'STORE_NOT_A_DATABASE')
      await refused(file, 'STORE_NOT_A_DATABASE', { readOnly: true })
    })
  }

  it('an empty file becomes a store', async () => {
    const file = freshFile()
    writeFileSync(file, '')
    expect(await send(await open(file), event('a'))).toEqual([{ kind: 'stored' }])
  })

  it('a folder is rejected', async () => {
    await expect(open(freshFolder())).rejects.toMatchObject({
      code: 'STORE_UNWRITABLE',
      fix: 'Choose another path, or move the existing file away.',
    })
  })
})

describe('a database of another program', () => {
  it('is rejected and unchanged', async () => {
    const file = freshFile()
    const db = connect(file)
    db.exec('create table customers (id integer primary key, name text); insert into customers (name) values (1), (2)')
    db.close()
    await refused(file, 'STORE_NOT_A_DATABASE')
    await refused(file, 'STORE_NOT_A_DATABASE', { readOnly: true })
  })

  it('is rejected even if it is empty except for a version', async () => {
    const file = freshFile()
    const db = connect(file)
    db.exec('pragma user_version = 1')
    db.close()
    await refused(file, 'STORE_NOT_A_DATABASE')
  })

  it('is rejected while the other program works on it, which is not disturbed', async () => {
    const file = freshFile()
    const db = connect(file)
    db.exec('pragma journal_mode = wal; create table t (x); insert into t values (1)')
    await refused(file, 'STORE_NOT_A_DATABASE')
    db.exec('insert into t values (2)')
    expect(db.prepare('select count(*) as n from t').get()).toEqual({ n: 2 })
  })

  it('is unchanged even if its process died and left a log behind', async () => {
    const file = freshFile()
    const db = connect(file)
    db.exec('pragma journal_mode = wal; create table t (x); insert into t values (1)')
    const left = join(dirname(file), 'left', 'left.db')
    mkdirSync(dirname(left))
    copyFileSync(file, left)
    copyFileSync(`${file}-wal`, `${left}-wal`)
    const log = hashOf(`${left}-wal`)
    await refused(left, 'STORE_NOT_A_DATABASE')
    expect(hashOf(`${left}-wal`)).toBe(log)
  })
})

describe('a newer schema', () => {
  it('is rejected, for work and for reading, and unchanged', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('a'))
    await store.close()
    const db = connect(file)
    db.exec('pragma user_version = 99')
    db.close()
    await refused(file, 'STORE_SCHEMA_NEWER')
    await refused(file, 'STORE_SCHEMA_NEWER', { readOnly: true })
  })
})
