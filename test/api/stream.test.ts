// Tests the live stream: all changes in order, resumable. A reader that is too slow is disconnected, and nothing is kept for it.
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Stream } from '../../src/api/stream.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { openStore, type Store } from '../../src/index.ts'
import { createEvent } from '../../src/model/new-event.ts'
import { createEventToStore as placed, createPlacement } from '../conformance/builders.ts'
import type { FeedEntry } from '../../src/store/contract/index.ts'

interface Scene {
  readonly clock: VirtualClock
  readonly store: Store
  readonly stream: Stream
  /** Opens a stream under a key of its own. */
  open(lastEventId: string, isStillIn?: () => Promise<boolean>): Promise<Response>
  happen(...types: string[]): Promise<void>
  /** Advances the time until the next check of the key is over. */
  look(): Promise<void>
}

let watchers = 0

async function scene(address: string): Promise<Scene> {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1))
  const store = await openStore(address, { clock })
  onTestFinished(() => store.close())
  const looked = { feeds: 0, heard: () => {} }
  const watched = new Proxy(store, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const call = (member as (...args: unknown[]) => Promise<unknown>).bind(target)
      return name === 'readFeed' ? (...args: unknown[]) => call(...args).finally(() => looked.heard()) : call
    },
  })
  const stream = new Stream({ store: async () => watched, clock })
  onTestFinished(() => stream.close())
  return {
    clock,
    store,
    stream,
    open: (lastEventId, isStillIn = async () => true) =>
      stream.open(lastEventId, { name: `reader ${watchers++}`, isStillAllowed: isStillIn }),
    async happen(...types) {
      const events = types.map((type) => ({
        ...createEvent({ type }, { now: clock.now(), dedupeFor: 1 }),
        placements: [],
        unrouted: [],
      }))
      await store.append({ routes: (await store.stats()).routes, events })
    },
    async look() {
      const heard = new Promise<void>((resolve) => (looked.heard = resolve))
      clock.advance(250)
      await heard
      // The stream sends what it received in the same turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/** Reads what has arrived, up to the given number of parts. */
async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const { value } = await reader.read()
  return Buffer.from(value ?? []).toString()
}

const typesIn = (text: string): string[] => [...text.matchAll(/"detail":"([^"]*)"/g)].map(([, type]) => type ?? '')
const changesIn = (text: string): FeedEntry[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as FeedEntry)
const lastIdIn = (text: string): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? ''

describe.each(['memory:', 'sqlite::memory:'])('the stream on %s', (address) => {
  test('sends all changes from now on, in order', async () => {
    const t = await scene(address)
    await t.happen('before')
    const response = await t.open('')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect(await read(reader)).toContain('event: begun')
    await t.happen('a', 'b')
    await t.look()
    await t.happen('c')
    const first = await read(reader)
    await t.look()
    expect([typesIn(first), typesIn(await read(reader))]).toEqual([['a', 'b'], ['c']])
  })

  test('resumes after the last id, without a gap and without repetition', async () => {
    const t = await scene(address)
    const first = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(first)
    await t.happen('a')
    await t.look()
    const id = lastIdIn(await read(first))
    await first.cancel()
    expect(t.stream.readers).toBe(0)
    await t.happen('b', 'c')
    const second = ((await t.open(id)).body as ReadableStream<Uint8Array>).getReader()
    expect(await read(second)).toContain('event: begun')
    await t.look()
    expect(typesIn(await read(second))).toEqual(['b', 'c'])
  })

  test('reports a gap after an id of another process or an invalid id', async () => {
    const t = await scene(address)
    await t.happen('a')
    for (const id of ['deadbeef-3', 'nonsense', '-', '7']) {
      const reader = ((await t.open(id)).body as ReadableStream<Uint8Array>).getReader()
      expect(await read(reader)).toContain('event: skipped')
      await reader.cancel()
    }
  })

  test('reports a gap after an id that is ahead of all changes, and continues from now', async () => {
    const t = await scene(address)
    await t.happen('a')
    const first = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    const [era = ''] = lastIdIn(await read(first)).split('-')
    await first.cancel()
    const reader = ((await t.open(`${era}-999999`)).body as ReadableStream<Uint8Array>).getReader()
    expect(await read(reader)).toContain('event: skipped')
    await t.happen('b')
    await t.look()
    expect(typesIn(await read(reader))).toEqual(['b'])
  })

  test('ends when the key is no longer valid: at the next check after a change of keys, or after a while', async () => {
    const t = await scene(address)
    const may = { read: true }
    const asked = async (): Promise<boolean> => may.read
    const ended = ((await t.open('', asked)).body as ReadableStream<Uint8Array>).getReader()
    const other = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(ended)
    await read(other)
    may.read = false
    t.stream.recheckAccess()
    await t.happen('a')
    await t.look()
    expect(await ended.read()).toEqual({ done: true, value: undefined })
    expect(typesIn(await read(other))).toEqual(['a'])
    const unheard = ((await t.open('', asked)).body as ReadableStream<Uint8Array>).getReader()
    await read(unheard)
    for (let n = 0; n < 60; n++) await t.look()
    expect(await unheard.read()).toEqual({ done: true, value: undefined })
    expect(t.stream.readers).toBe(1)
  })

  test("contains operators' actions on flows, lanes and dead letters, with the lane and its key", async () => {
    const t = await scene(address)
    const reader = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(reader)
    const by = { reason: 'a look first', by: 'ada' }
    await t.store.steer({ what: 'flows', ids: ['f'], act: { kind: 'pause', ...by } })
    await t.store.steer({ what: 'flows', ids: ['f'], act: { kind: 'resume' } })
    const { lane } = createPlacement({ flow: 'f', key: 'ada' })
    const waits = placed('x', { flow: 'f', key: 'ada', quiet: 60_000 }, t.clock.now())
    await t.store.append({ routes: (await t.store.stats()).routes, events: [waits] })
    await t.store.steer({ what: 'lanes', ids: [lane], act: { kind: 'hold', for: 1_000, ...by } })
    await t.store.steer({ what: 'lanes', ids: [lane], act: { kind: 'unhold' } })
    await t.look()
    const told = changesIn(await read(reader)).filter(({ kind }) => kind === 'steered')
    expect(told.map(({ flow, detail, id, key }) => [flow, detail, id, key])).toEqual([
      ['f', 'pause', 'f', undefined],
      ['f', 'resume', 'f', undefined],
      ['f', 'hold', lane, 'ada'],
      ['f', 'unhold', lane, 'ada'],
    ])
  })

  test('a key has at most 20 streams at a time, so that there is room for others', async () => {
    const t = await scene(address)
    const open = (name: string): Promise<Response> => t.stream.open('', { name, isStillAllowed: async () => true })
    const mine = await Promise.all(Array.from({ length: 20 }, () => open('ada')))
    await expect(open('ada')).rejects.toMatchObject({
      code: 'TOO_MANY_REQUESTS',
      message: expect.stringContaining('ada'),
    })
    await open('bob')
    expect(t.stream.readers).toBe(21)
    await mine[0]?.body?.cancel()
    await open('ada')
    await expect(open('ada')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  })

  test('contains the alerts of the app', async () => {
    const t = await scene(address)
    const reader = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(reader)
    const alert = placed('x', { source: 'sluice', type: 'alert.raised' }, t.clock.now())
    const other = placed('y', { source: 'shop', type: 'alert.raised' }, t.clock.now())
    await t.store.append({ routes: (await t.store.stats()).routes, events: [alert, other] })
    await t.look()
    expect(changesIn(await read(reader)).map(({ kind }) => kind)).toEqual(['alert', 'event'])
  })

  test('reports a gap to a reader that was away for too long', async () => {
    const t = await scene(address)
    const first = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    const id = lastIdIn(await read(first))
    await first.cancel()
    for (let n = 0; n < 5; n++) await t.happen(...Array.from({ length: 1_000 }, (_, at) => `e${n}-${at}`))
    const second = ((await t.open(id)).body as ReadableStream<Uint8Array>).getReader()
    await read(second)
    await t.look()
    expect(await read(second)).toMatch(/^event: skipped/)
  })

  test('disconnects a reader that does not read, and no other', async () => {
    const t = await scene(address)
    const slow = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    const good = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(good)
    let told = 0
    for (let n = 0; n < 6; n++) {
      await t.happen(...Array.from({ length: 900 }, () => 'x'.repeat(200)))
      await t.look()
      told += typesIn(await read(good)).length
    }
    expect(told).toBe(5_400)
    expect(t.stream.readers).toBe(1)
    await expect(
      (async () => {
        for (;;) if ((await slow.read()).done) return
      })(),
    ).rejects.toThrow('too slow')
  })

  test('sends a comment from time to time while nothing happens', async () => {
    const t = await scene(address)
    const reader = ((await t.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(reader)
    for (let n = 0; n < 61; n++) await t.look()
    expect(await read(reader)).toBe(': still there\n\n')
  })

  test('has at most a hundred readers', async () => {
    const t = await scene(address)
    for (let n = 0; n < 100; n++) await t.open('')
    await expect(t.open('')).rejects.toThrow('TOO_MANY_REQUESTS')
  })

  test('has at most a hundred readers, also of simultaneous ones; one whose check fails frees its place', async () => {
    const t = await scene(address)
    vi.spyOn(t.store, 'readFeed').mockRejectedValueOnce(new Error('The disk is gone.'))
    await expect(t.open('')).rejects.toThrow('The disk is gone.')
    const came = await Promise.allSettled(Array.from({ length: 150 }, () => t.open('')))
    expect(came.filter(({ status }) => status === 'fulfilled')).toHaveLength(100)
    expect(t.stream.readers).toBe(100)
  })
})
