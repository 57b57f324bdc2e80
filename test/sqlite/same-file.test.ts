// When the file is removed, moved or replaced under a working process, the process acknowledges nothing more.
import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { event, freshFile, freshFolder, open, send } from './scratch.ts'

const LOOK = 1_000

const HARMS: Readonly<Record<string, (file: string) => void>> = {
  'the file is removed': (file) => rmSync(file),
  'the file is moved': (file) => renameSync(file, `${file}.old`),
  'another file takes its place': (file) => {
    copyFileSync(file, `${file}.copy`)
    renameSync(`${file}.copy`, file)
  },
  'the log is removed': (file) => rmSync(`${file}-wal`),
  'the index of the log is removed': (file) => rmSync(`${file}-shm`),
}

it.each(Object.entries(HARMS))('%s: the store reports it, and accepts nothing more', async (_, harm) => {
  const file = freshFile()
  const clock = new VirtualClock()
  const store = await open(file, { clock })
  await send(store, event('a'))
  harm(file)
  clock.advance(LOOK)
  await expect(send(store, event('b'))).rejects.toMatchObject({ code: 'STORE_REPLACED' })
  await expect(send(store, event('c'))).rejects.toMatchObject({ code: 'STORE_REPLACED' })
  expect(await store.get({ kind: 'events', id: 'a' })).toBeDefined()
})

it('the file is the same by every path, and the target of a link may change later', async () => {
  const folder = freshFolder()
  for (const name of ['one', 'two']) mkdirSync(join(folder, name))
  symlinkSync(join(folder, 'one'), join(folder, 'current'))
  const clock = new VirtualClock()
  const store = await open(join(folder, 'current', 'a.db'), { clock })
  rmSync(join(folder, 'current'))
  symlinkSync(join(folder, 'two'), join(folder, 'current'))
  clock.advance(LOOK)
  expect((await send(store, event('a'))).map(({ kind }) => kind)).toEqual(['stored'])
})
