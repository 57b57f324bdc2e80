// One process works on a file, and any number read it. Other processes are rejected at once with the reason.
import { once } from 'node:events'
import { chmodSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { createClaimRequest } from '../conformance/builders.ts'
import type { SettleAndClaimCall } from '../../src/store/contract/index.ts'
import type { Opening } from './open-child.ts'
import { connect, event, firstLine, freshFile, freshFolder, open, send, start } from './scratch.ts'

const NOBODY = 65_534
/** The interval at which a process checks its files. */
const LOOK = 1_000

function claimAll(request: number): SettleAndClaimCall {
  return { process: 'p', request, routes: 1, settle: [], claim: [createClaimRequest()], budget: 1_000 }
}

async function elsewhere(file: string, how: 'read' | 'work', user: number | '' = ''): Promise<Opening> {
  return firstLine<Opening>(start('open-child.ts', [file, String(user), how, 'leave']))
}

describe('a second working process', () => {
  it('is rejected with a message that names the file', async () => {
    const file = freshFile()
    await send(await open(file), event('a'))
    const { code, message } = await elsewhere(file, 'work')
    expect(code).toBe('STORE_IN_USE')
    expect(message).toContain(file)
  })

  it('is rejected in the same process too', async () => {
    const file = freshFile()
    const first = await open(file)
    await expect(open(file)).rejects.toMatchObject({ code: 'STORE_IN_USE' })
    expect(await send(first, event('a'))).toEqual([{ kind: 'stored' }])
  })

  it('is rejected even if it opens the file by another path', async () => {
    const file = freshFile()
    await send(await open(file), event('a'))
    const link = join(dirname(file), 'link.db')
    symlinkSync(file, link)
    await expect(open(link)).rejects.toMatchObject({ code: 'STORE_IN_USE' })
  })

  it('is accepted when the first one has closed', async () => {
    const file = freshFile()
    const first = await open(file)
    await send(first, event('a'))
    await first.close()
    expect(await elsewhere(file, 'work')).toMatchObject({ events: 2 })
  })

  it('is accepted at once when the first one was killed', async () => {
    const file = freshFile()
    const holder = start('open-child.ts', [file, '', 'work', 'hold'])
    expect(await firstLine<Opening>(holder)).toMatchObject({ events: 1 })
    await expect(open(file)).rejects.toMatchObject({ code: 'STORE_IN_USE' })
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    const store = await open(file)
    expect((await store.get({ kind: 'events', id: 'held' })).item?.id).toBe('held')
  })
})

describe('a process whose lock file is removed', () => {
  it('writes nothing more once another process has taken the file over', async () => {
    const file = freshFile()
    // Its clock stands still, so it does not check its files.
    const first = await open(file, { clock: new VirtualClock() })
    await send(first, event('a'), event('b'))
    rmSync(`${file}-lock`)
    const second = await open(file, { clock: new VirtualClock() })
    await expect(send(first, event('c'))).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    await expect(first.settleAndClaim(claimAll(1))).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    expect(await send(second, event('d'))).toEqual([{ kind: 'stored' }])
    expect((await second.settleAndClaim(claimAll(1))).claimed.map(({ key }) => key).toSorted()).toEqual(['a', 'b', 'd'])
    expect(await second.count({ kind: 'events', filter: {}, cursor: '', atMost: 9 })).toMatchObject({ count: 3 })
    await expect(send(first, event('e'))).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    await first.close()
    expect(await send(second, event('f'))).toEqual([{ kind: 'stored' }])
    expect(connect(file).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  })

  it('executes none of several calls that share a commit after that', async () => {
    const file = freshFile()
    const first = await open(file, { clock: new VirtualClock() })
    rmSync(`${file}-lock`)
    const second = await open(file)
    const calls = await Promise.allSettled(['a', 'b', 'c'].map((name) => send(first, event(name))))
    expect(calls.map((call) => call.status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(await second.count({ kind: 'events', filter: {}, cursor: '', atMost: 9 })).toMatchObject({ count: 0 })
  })

  it('takes the lock again at its next check, and rejects others as before', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    for (const name of ['a', 'b']) {
      rmSync(`${file}-lock`)
      clock.advance(LOOK)
      expect(await send(store, event(name))).toEqual([{ kind: 'stored' }])
      await expect(open(file)).rejects.toMatchObject({ code: 'STORE_IN_USE' })
    }
    await store.close()
    expect(await send(await open(file), event('c'))).toEqual([{ kind: 'stored' }])
  })

  it('continues while another program holds the lock without working on the file', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    rmSync(`${file}-lock`)
    const other = connect(`${file}-lock`)
    other.exec('begin exclusive')
    clock.advance(LOOK)
    expect(await send(store, event('a'))).toEqual([{ kind: 'stored' }])
    other.close()
    clock.advance(LOOK)
    expect(await send(store, event('b'))).toEqual([{ kind: 'stored' }])
    await expect(open(file)).rejects.toMatchObject({ code: 'STORE_IN_USE' })
  })
})

describe('readers', () => {
  it('can open the file while a process works, and see what is committed, then and later', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('a'))
    const reader = await open(file, { readOnly: true })
    const count = async (): Promise<number> =>
      (await reader.count({ kind: 'events', filter: {}, cursor: '', atMost: 10 })).count
    expect(await count()).toBe(1)
    await send(store, event('b'))
    expect(await count()).toBe(2)
    expect(await elsewhere(file, 'read')).toMatchObject({ events: 2 })
  })

  it('do not keep a process from working', async () => {
    const file = freshFile()
    await (await open(file)).close()
    await open(file, { readOnly: true })
    expect(await send(await open(file), event('a'))).toEqual([{ kind: 'stored' }])
  })

  it('cannot write', async () => {
    const file = freshFile()
    const store = await open(file)
    const reader = await open(file, { readOnly: true })
    await expect(send(reader, event('a'))).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    expect((await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 1 })).count).toBe(0)
  })
})

describe('a folder without write permission', () => {
  // Root may write everywhere, so under root the child changes its user before it opens the file.
  const user = process.getuid?.() === 0 ? NOBODY : ''

  it('is rejected for a new file', async () => {
    const folder = freshFolder()
    chmodSync(dirname(folder), 0o755)
    chmodSync(folder, 0o555)
    const file = join(folder, 'new.db')
    const { code, message } = await elsewhere(file, 'work', user)
    expect(code).toBe('STORE_UNWRITABLE')
    expect(message).toContain(file)
    // The folder was the reason: nothing else kept this user out.
    chmodSync(folder, 0o777)
    expect(await elsewhere(file, 'work', user)).toMatchObject({ events: 1 })
  })

  it('is rejected for an existing store, which stays unchanged', async () => {
    const folder = freshFolder()
    chmodSync(dirname(folder), 0o755)
    const file = join(folder, 'there.db')
    const store = await open(file)
    await send(store, event('a'))
    await store.close()
    for (const path of [file, folder]) chmodSync(path, 0o555)
    expect((await elsewhere(file, 'work', user)).code).toBe('STORE_UNWRITABLE')
    for (const path of [file, folder]) chmodSync(path, 0o755)
    expect(connect(file).prepare('select count(*) as n from events').get()).toEqual({ n: 1 })
  })
})
