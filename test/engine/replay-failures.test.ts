// L16 with failures: crashes, purges, keys that throw, payloads that cannot be decrypted. Nothing runs twice, nothing is omitted.
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { Publisher } from '../../src/publish/publisher.ts'
import { unverified } from '../../src/sources/index.ts'
import { TableStore } from '../../src/store/core/store.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { ping, play, sendNow, soon, START, STORES } from './scene.ts'
import { ran, shown, simple } from './replay-scene.ts'
import { ownFile } from '../temporary-folder.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

const post = (t: TestApp, n: number): Promise<Response> =>
  t.app.fetch(
    new Request('http://localhost/in/shop', { method: 'POST', body: JSON.stringify({ n }), headers: JSON_TYPE }),
  )

describe.each(STORES)('L16 a replay with failures on %s', (store) => {
  test('L16 events that were purged meanwhile are counted as gone', async () => {
    const t = await play(store, simple)
    await sendNow(t, [ping('a', 1), { ...ping('b', 2), tenant: 'acme' }, ping('c', 3)])
    await t.app.admin.replays.start({}, { id: 'r', rate: 1, per: '10s' })
    await soon(t)
    await t.app.admin.purge({ tenant: 'acme' })
    await t.advance('1m')
    expect(ran(t).flat()).toEqual([1, 2, 3, 1, 3])
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', found: 3, placed: 2, gone: 1 })
  })

  test('L16 an event whose key throws fails alone, with the error', async () => {
    let strict = false
    const key = (event: { readonly data: unknown }): string => {
      const { user = '' } = event.data as { user?: string }
      if (strict && user === 'b') throw new Error('no such user')
      return user
    }
    const t = await play(store, (app) => app.flow('f', { on: 'ping', key, run: () => {} }))
    await sendNow(t, [ping('a', 1), ping('b', 2), ping('c', 3)])
    strict = true
    await t.app.admin.replays.start({}, { id: 'r' })
    await soon(t)
    expect(ran(t).slice(3).flat()).toEqual([1, 3])
    expect(await shown(t, 'r')).toMatchObject({ placed: 2, failed: 1, error: 'no such user' })
  })

  test('L16 only a few large events are in memory at once', async () => {
    const t = await play(store, simple)
    const pad = 'x'.repeat(900_000)
    for (let n = 0; n < 12; n++) await sendNow(t, { type: 'ping', data: { user: 'a', n, pad } })
    const bodies = vi.spyOn(TableStore.prototype, 'readBodies')
    onTestFinished(() => bodies.mockRestore())
    await t.app.admin.replays.start({}, { id: 'r' })
    await soon(t)
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', scanned: 12, placed: 12 })
    expect(bodies.mock.calls.map(([{ events }]) => events.length)).toEqual([4, 4, 4])
  })

  test('L16 a replay that fails too often is stuck, with the reason, until its dead letter is retried', async () => {
    const t = await play(store, simple)
    await sendNow(t, ping('a', 1))
    t.fail('sluice.replay', new Error('no disk'), 6)
    await t.app.admin.replays.start({}, { id: 'r' })
    await t.advance('2h')
    expect(await shown(t, 'r')).toMatchObject({ state: 'stuck', error: 'Error: no disk', placed: 0 })
    await t.app.admin.deadLetters.retry({ flow: 'sluice.replay' })
    await soon(t)
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', placed: 1 })
    expect(ran(t)).toEqual([[1], [1]])
  })

  test('L16 after a crash in the middle, the replay continues where it was, and repeats and omits nothing', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', retry: [], run: () => {} }))
    await sendNow(
      t,
      Array.from({ length: 12 }, (_, n) => ping('a', n)),
    )
    await t.app.admin.replays.start({}, { id: 'r', rate: 4, per: '1s' })
    await t.advance('1200ms')
    await t.crash()
    await t.restart()
    await t.advance('2m')
    expect(
      ran(t)
        .slice(12)
        .flat()
        .toSorted((one, other) => Number(one) - Number(other)),
    ).toEqual(Array.from({ length: 12 }, (_, n) => n))
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', scanned: 12, placed: 12 })
  })

  test('L16 if the process died before the first step was stored, the next start continues the replay', async () => {
    const t = await play(store, simple)
    await sendNow(t, ping('a', 1))
    t.app.on('replay.started', () => void t.crash())
    const append = vi.spyOn(Publisher.prototype, 'publish').mockRejectedValueOnce(new Error('killed'))
    await expect(t.app.admin.replays.start({}, { id: 'r' })).rejects.toThrow('killed')
    append.mockRestore()
    await t.advance('1m')
    expect(ran(t)).toEqual([[1]])
    await t.restart()
    await soon(t)
    expect(ran(t)).toEqual([[1], [1]])
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', placed: 1 })
  })
})

test('L16 encrypted events are decrypted for a replay; those whose key is gone fail alone', async () => {
  const file = ownFile()
  const [oldKey, newKey] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'))
  const begun = async (key: string | undefined): Promise<TestApp> => {
    const app = new Sluice({ store: 'memory:', log: false, encryptionKey: key ?? '' })
    app.flow('f', { on: 'shop/*', run: () => {} })
    app.source('shop', unverified({ verify: 'none' }), { encrypt: true })
    return testApp(app, { store: file, now: START })
  }
  const first = await begun(oldKey)
  expect((await post(first, 1)).ok).toBe(true)
  await soon(first)
  await first.app.admin.replays.start({}, { id: 'one' })
  await soon(first)
  expect(ran(first)).toEqual([[1], [1]])
  await first.stop()
  const second = await begun(newKey)
  expect((await post(second, 2)).ok).toBe(true)
  await soon(second)
  await second.app.admin.replays.start({}, { id: 'two' })
  await soon(second)
  expect(ran(second)).toEqual([[2], [2]])
  expect(await shown(second, 'two')).toMatchObject({
    placed: 1,
    failed: 1,
    error: expect.stringContaining('ENCRYPTION_KEY_UNKNOWN'),
  })
  await second.stop()
})
