// The live stream: all that happens, in order, resumable; who reads too slowly is cut off, and nothing is kept for him.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Stream } from '../../src/api/stream.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { openStore, type Store } from '../../src/index.ts'
import { newEvent } from '../../src/receive/new-event.ts'

interface Scene {
  readonly clock: VirtualClock
  readonly store: Store
  readonly stream: Stream
  happen(...types: string[]): Promise<void>
  /** Time passes until the next look is over. */
  look(): Promise<void>
}

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
      return name === 'feed' ? (...args: unknown[]) => call(...args).finally(() => looked.heard()) : call
    },
  })
  const stream = new Stream({ store: async () => watched, clock })
  onTestFinished(() => stream.end())
  return {
    clock,
    store,
    stream,
    async happen(...types) {
      const events = types.map((type) => ({
        ...newEvent({ type }, { now: clock.now(), dedupeFor: 1 }),
        places: [],
        marks: [],
      }))
      await store.append({ routes: (await store.stats()).routes, events })
    },
    async look() {
      const heard = new Promise<void>((resolve) => (looked.heard = resolve))
      clock.advance(250)
      await heard
      // What was heard is told in the same turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/** Reads what is there, up to so many parts. */
async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const { value } = await reader.read()
  return Buffer.from(value ?? []).toString()
}

const typesIn = (text: string): string[] => [...text.matchAll(/"detail":"([^"]*)"/g)].map(([, type]) => type ?? '')
const lastIdIn = (text: string): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? ''

describe.each(['memory:', 'sqlite::memory:'])('the stream on %s', (address) => {
  test('tells what happens from now on, in its order', async () => {
    const t = await scene(address)
    await t.happen('before')
    const response = await t.stream.open('')
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

  test('goes on from the last id, without a gap and without repeating', async () => {
    const t = await scene(address)
    const first = ((await t.stream.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(first)
    await t.happen('a')
    await t.look()
    const id = lastIdIn(await read(first))
    await first.cancel()
    expect(t.stream.readers).toBe(0)
    await t.happen('b', 'c')
    const second = ((await t.stream.open(id)).body as ReadableStream<Uint8Array>).getReader()
    expect(await read(second)).toContain('event: begun')
    await t.look()
    expect(typesIn(await read(second))).toEqual(['b', 'c'])
  })

  test('an id of another process, or nonsense: it is told that something was missed', async () => {
    const t = await scene(address)
    await t.happen('a')
    for (const id of ['deadbeef-3', 'nonsense', '-', '7']) {
      const reader = ((await t.stream.open(id)).body as ReadableStream<Uint8Array>).getReader()
      expect(await read(reader)).toContain('event: skipped')
      await reader.cancel()
    }
  })

  test('one that was away for too long is told that it missed something', async () => {
    const t = await scene(address)
    const first = ((await t.stream.open('')).body as ReadableStream<Uint8Array>).getReader()
    const id = lastIdIn(await read(first))
    await first.cancel()
    for (let n = 0; n < 5; n++) await t.happen(...Array.from({ length: 1_000 }, (_, at) => `e${n}-${at}`))
    const second = ((await t.stream.open(id)).body as ReadableStream<Uint8Array>).getReader()
    await read(second)
    await t.look()
    expect(await read(second)).toMatch(/^event: skipped/)
  })

  test('one that does not read is cut off; others are not', async () => {
    const t = await scene(address)
    const slow = ((await t.stream.open('')).body as ReadableStream<Uint8Array>).getReader()
    const good = ((await t.stream.open('')).body as ReadableStream<Uint8Array>).getReader()
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

  test('nothing happens: a sign of life now and then', async () => {
    const t = await scene(address)
    const reader = ((await t.stream.open('')).body as ReadableStream<Uint8Array>).getReader()
    await read(reader)
    for (let n = 0; n < 61; n++) await t.look()
    expect(await read(reader)).toBe(': still there\n\n')
  })

  test('at most a hundred watch', async () => {
    const t = await scene(address)
    for (let n = 0; n < 100; n++) await t.stream.open('')
    await expect(t.stream.open('')).rejects.toThrow('TOO_MANY_CALLS')
  })
})
