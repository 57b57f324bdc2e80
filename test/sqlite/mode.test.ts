// Only the user that works on a store can access its files; the mode of an existing file is its owner's decision.
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { event, freshFolder, open, send } from './scratch.ts'

const modes = (folder: string): Record<string, string> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]))

test('a new file, its log, their index and its lock have mode 0600, for any umask', async () => {
  const folder = freshFolder()
  const store = await open(join(folder, 'new.db'))
  await send(store, event('a'))
  const found = modes(folder)
  expect(Object.keys(found)).toEqual(expect.arrayContaining(['new.db', 'new.db-lock', 'new.db-shm', 'new.db-wal']))
  expect(new Set(Object.values(found))).toEqual(new Set(['600']))
})

test('an existing file keeps its mode', async () => {
  const folder = freshFolder()
  const file = join(folder, 'old.db')
  await (await open(file)).close()
  chmodSync(file, 0o640)
  await send(await open(file), event('a'))
  expect(modes(folder)).toMatchObject({ 'old.db': '640', 'old.db-wal': '640', 'old.db-shm': '640' })
})

test('a file that cannot be created causes STORE_UNWRITABLE', async () => {
  await expect(open(join(freshFolder(), 'none', 'new.db'))).rejects.toThrow('STORE_UNWRITABLE')
})
