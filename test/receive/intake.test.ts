// The buffer before the store: one commit for events that arrive together, a bound, and no acknowledgement before the commit (R2, R4).
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { DEFAULTS, openStore, SluiceError, type Store } from '../../src/index.ts'
import { Intake, type IntakeDependencies } from '../../src/publish/intake.ts'
import { createEvent, type RoutableEvent } from '../../src/model/new-event.ts'
import type { PublishResult } from '../../src/model/event.ts'
import type { Source } from '../../src/receive/source.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { eventsIn, githubHook, NOW, opened, problemOf, textOf, withGithub } from './scene.ts'

function event(id: string, bytes = 10): RoutableEvent {
  return createEvent({ id, type: 'ping', body: Buffer.alloc(bytes) }, { now: 0, dedupeFor: 1_000 })
}

interface Call {
  readonly ids: readonly string[]
  readonly end: () => void
  readonly fail: (error: Error) => void
}

/** Calls wait until the test resolves them. */
class Slow {
  readonly calls: Call[] = []
  readonly intake: Intake

  constructor(bounds: Partial<IntakeDependencies> = {}) {
    const store = (events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly PublishResult[]>()
      const ids = events.map(({ id }) => id)
      const published = ids.map((id) => ({ id, kind: 'stored', of: undefined }) as const)
      this.calls.push({ ids, end: () => resolve(published), fail: reject })
      return promise
    }
    this.intake = new Intake({ store, maxEvents: 10, maxBytes: 1_000, ...bounds })
  }

  get ids(): readonly (readonly string[])[] {
    return this.calls.map(({ ids }) => ids)
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

const many = (name: string, n: number): RoutableEvent[] => Array.from({ length: n }, (_, at) => event(`${name}${at}`))

describe('the intake', () => {
  it('sends half of many events first if the store has nothing to do and overlaps with the process, and all of few', async () => {
    const slow = new Slow({ maxEvents: 10_000, maxBytes: 1e9, overlaps: () => true })
    const [few, lots] = [() => slow.intake.take(many('few', 30)), () => slow.intake.take(many('lots', 50))]
    const sizes = (): readonly number[] => slow.ids.map(({ length }) => length)
    void [few(), few(), few()]
    await turns()
    expect(sizes()).toEqual([90])
    slow.calls[0]?.end()
    await turns()
    void [lots(), lots(), lots(), lots()]
    await turns()
    expect(sizes()).toEqual([90, 100, 100])
    // The store is busy with the second half, so everything that waits goes together.
    void [lots(), lots(), lots()]
    slow.calls[1]?.end()
    await turns()
    expect(sizes()).toEqual([90, 100, 100, 150])
  })

  it('stores events that arrive together in one call, and returns each its own result', async () => {
    const slow = new Slow()
    const { intake } = slow
    const all = [intake.take([event('a'), event('b')]), intake.take([event('c')]), intake.take([event('d')])]
    await turns()
    slow.calls[0]?.end()
    const published = await Promise.all(all.map(async (one) => one))
    expect(published.map((some) => some?.map(({ id }) => id))).toEqual([['a', 'b'], ['c'], ['d']])
    expect(slow.ids).toEqual([['a', 'b', 'c', 'd']])
  })

  it('has at most two calls in progress; other events wait together', async () => {
    const slow = new Slow()
    for (const id of ['a', 'b', 'c', 'd']) {
      void slow.intake.take([event(id)])
      await turns()
    }
    expect(slow.ids).toEqual([['a'], ['b']])
    slow.calls[0]?.end()
    await turns()
    expect(slow.ids).toEqual([['a'], ['b'], ['c', 'd']])
  })

  it('passes at most 2,000 events per call, unless they came together, and starts the next call at once', async () => {
    const slow = new Slow({ maxEvents: 10_000, maxBytes: 1e9 })
    for (const [name, n] of [
      ['a', 1_500],
      ['b', 1_000],
      ['c', 3_000],
    ] as const)
      void slow.intake.take(many(name, n))
    await turns()
    expect(slow.ids.map((ids) => ids.length)).toEqual([1_500, 1_000])
    slow.calls[0]?.end()
    await turns()
    expect(slow.ids.map((ids) => ids.length)).toEqual([1_500, 1_000, 3_000])
  })

  it('passes at most 16 MB per call', async () => {
    const slow = new Slow({ maxEvents: 10_000, maxBytes: 1e9 })
    for (const id of ['a', 'b', 'c']) void slow.intake.take([event(id, 6 * 2 ** 20)])
    await turns()
    expect(slow.ids).toEqual([['a', 'b'], ['c']])
  })

  it('has room for a number of events, and again after they are stored', async () => {
    const slow = new Slow({ maxEvents: 3 })
    const first = slow.intake.take([event('a'), event('b')])
    expect(slow.intake.take([event('c'), event('d')])).toBeUndefined()
    const second = slow.intake.take([event('e')])
    expect(slow.intake.take([event('f')])).toBeUndefined()
    await turns()
    for (const call of slow.calls) call.end()
    await Promise.all([first, second])
    expect(slow.intake.take([event('g'), event('h'), event('i')])).toBeDefined()
    expect(slow.intake.take([event('j')])).toBeUndefined()
  })

  it('has room for a number of bytes, and again after they are stored', async () => {
    const slow = new Slow({ maxBytes: 100 })
    const first = slow.intake.take([event('a', 60)])
    expect(slow.intake.take([event('b', 41)])).toBeUndefined()
    await turns()
    slow.calls[0]?.fail(new Error('full'))
    await expect(first).rejects.toThrow('full')
    expect(slow.intake.take([event('c', 41)])).toBeDefined()
    expect(slow.intake.take([event('d', 59)])).toBeDefined()
    expect(slow.intake.take([event('e', 1)])).toBeUndefined()
  })

  it('accepts one request above the whole bound at a time, beside others', async () => {
    const slow = new Slow({ maxBytes: 100 })
    void slow.intake.take([event('a', 60)])
    const large = slow.intake.take([event('b', 500)])
    expect(large).toBeDefined()
    expect(slow.intake.take([event('c', 500)])).toBeUndefined()
    expect(slow.intake.take([event('d', 40)])).toBeDefined()
    expect(slow.intake.take([event('e', 1)])).toBeUndefined()
    await turns()
    for (const call of slow.calls) call.end()
    await large
    expect(slow.intake.take([event('f', 500)])).toBeDefined()
    expect(slow.intake.take([event('g', 100)])).toBeDefined()
  })

  it('counts everything that is kept of an event', async () => {
    const slow = new Slow({ maxEvents: 10_000, maxBytes: 1e9 })
    const attributes = { long: 'x'.repeat(6 * 2 ** 20) }
    const wordy = (id: string): RoutableEvent => createEvent({ id, type: 'ping', attributes }, { now: 0, dedupeFor: 1 })
    for (const id of ['a', 'b', 'c']) void slow.intake.take([wordy(id)])
    await turns()
    expect(slow.ids).toEqual([['a', 'b'], ['c']])
  })

  it('retries events separately that failed together, if one of them may be the reason', async () => {
    const slow = new Slow()
    const all = ['a', 'b', 'c'].map((id) => slow.intake.take([event(id)]))
    await turns()
    slow.calls[0]?.fail(new SluiceError('STORE_FAILED', 'too long for an index'))
    await turns()
    slow.calls[1]?.end()
    await turns()
    slow.calls[2]?.fail(new SluiceError('STORE_FAILED', 'too long for an index'))
    await turns()
    slow.calls[3]?.end()
    const ends = await Promise.allSettled(all.map(async (one) => one))
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(slow.ids).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c']])
  })

  it('gives up on the others when three in a row have failed, because then no single one is the reason', async () => {
    const slow = new Slow()
    const all = ['a', 'b', 'c', 'd', 'e'].map((id) => slow.intake.take([event(id)]))
    for (let n = 0; n < 4; n++) {
      await turns()
      slow.calls[n]?.fail(new SluiceError('STORE_FULL', 'the disk is full'))
    }
    for (const one of all) await expect(one).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(slow.ids).toEqual([['a', 'b', 'c', 'd', 'e'], ['a'], ['b'], ['c']])
  })

  it('does not retry if the store is unreachable', async () => {
    const slow = new Slow()
    const all = ['a', 'b'].map((id) => slow.intake.take([event(id)]))
    await turns()
    slow.calls[0]?.fail(new SluiceError('STORE_UNREACHABLE', 'no answer'))
    for (const one of all) await expect(one).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    expect(slow.ids).toEqual([['a', 'b']])
  })

  it('is drained when nothing waits or is in progress', async () => {
    const slow = new Slow()
    await slow.intake.drained()
    for (const id of ['a', 'b', 'c']) {
      void slow.intake.take([event(id)])
      await turns()
    }
    let drained = false
    void slow.intake.drained().then(() => (drained = true))
    for (const n of [0, 1, 2]) {
      await turns()
      expect(drained).toBe(false)
      slow.calls[n]?.end()
    }
    await turns()
    expect(drained).toBe(true)
  })

  it('calls the store without an async context, because a call has events of many requests', async () => {
    const about = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const store = async (events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> => {
      seen.push(about.getStore())
      return events.map(({ id }) => ({ id, kind: 'stored', of: undefined }))
    }
    const intake = new Intake({ store, maxEvents: 10, maxBytes: 1_000 })
    await about.run('a', async () => {
      await intake.take([event('a')])
      expect(about.getStore()).toBe('a')
    })
    expect(seen).toEqual([undefined])
  })

  it('rejects the events of a call that fails, and continues with the next call', async () => {
    const slow = new Slow()
    const both = [slow.intake.take([event('a')]), slow.intake.take([event('b')])]
    await turns()
    const later = slow.intake.take([event('c')])
    await turns()
    slow.calls[0]?.fail(new Error('disk'))
    slow.calls[1]?.end()
    for (const one of both) await expect(one).rejects.toThrow('disk')
    await expect(later).resolves.toMatchObject([{ id: 'c', kind: 'stored' }])
    const last = slow.intake.take([event('d')])
    await turns()
    slow.calls[2]?.end()
    await expect(last).resolves.toMatchObject([{ id: 'd' }])
  })
})

/** The buffer before the store has room for three. */
const PER_LIST = Math.floor(DEFAULTS.maxIntakeEvents / 3)
const LISTS: Source = {
  scheme: 'lists',
  secrets: [],
  verify: 'none',
  events: ({ body }) =>
    Array.from({ length: PER_LIST }, (_, n) => ({ type: 'item', dedupeId: `${textOf(body)}/${n}`, body })),
}

/** A real store with one member replaced. */
function changed(store: Store, member: 'append', by: Store['append']): Store {
  return new Proxy(store, {
    get: (target, name): unknown => {
      const own: unknown = name === member ? by : Reflect.get(target, name)
      return typeof own === 'function' && name !== member ? own.bind(target) : own
    },
  })
}

describe('an app', () => {
  it('responds with 503 and Retry-After while too much waits for the store, and with 2xx when there is room', async () => {
    const real = await openStore('memory:', { clock: new VirtualClock(NOW) })
    const gate = Promise.withResolvers<void>()
    const store = changed(real, 'append', async (call) => (await gate.promise, real.append(call)))
    const { app } = await opened((one) => one.source('lists', LISTS), { store })
    const send = (n: number): Promise<Response> =>
      app.fetch(new Request('http://hooks.test/in/lists', { method: 'POST', body: `list ${n}` }))
    const waiting = [send(1), send(2), send(3)]
    // Three of them are waiting once the fourth has no room.
    const refused = await send(4)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect((await problemOf(refused)).code).toBe('BUSY')
    gate.resolve()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([202, 202, 202])
    expect((await send(4)).status).toBe(202)
    expect((await real.count({ kind: 'events', filter: {}, cursor: '', atMost: 100_000 })).count).toBe(4 * PER_LIST)
    await app.stop()
    await real.close()
  })

  it('acknowledges exactly the stored events, although the store fails from time to time', async () => {
    const real = await openStore('memory:', { clock: new VirtualClock(NOW) })
    let calls = 0
    const store = changed(real, 'append', async (call) => {
      if (++calls % 3 === 0) throw new Error('disk')
      await new Promise((resolve) => setImmediate(resolve))
      return real.append(call)
    })
    const { app } = await opened(withGithub, { store })
    const send = async (n: number): Promise<readonly [string, number]> => {
      for (let turn = 0; turn < n % 7; turn++) await new Promise((resolve) => setImmediate(resolve))
      const response = await app.fetch(githubHook(`{"n":${n}}`, { delivery: `d${n}` }))
      if (response.status !== 202) expect((await problemOf(response)).code).toBe('STORE_FAILED')
      return [`{"n":${n}}`, response.status]
    }
    const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => send(n)))
    const acked = answers.filter(([, status]) => status === 202).map(([body]) => body)
    const stored = (await eventsIn(real)).map((one) => Buffer.from(one.body ?? []).toString())
    expect(new Set(stored)).toEqual(new Set(acked))
    expect(acked.length).toBeGreaterThan(0)
    expect(acked.length).toBeLessThan(300)
    await app.stop()
    await real.close()
  })

  it('does not acknowledge an event that the store rejects', async () => {
    const real = await openStore('memory:', { clock: new VirtualClock(NOW) })
    const store = changed(real, 'append', async ({ events }) => {
      const reply = await real.append({ routes: 1_000, events: [] })
      return { ...reply, results: events.map(() => ({ kind: 'refused', field: 'id', fix: 'use a fresh id' })) }
    })
    const { app } = await opened(withGithub, { store })
    const response = await app.fetch(githubHook('{}'))
    expect([response.status, (await problemOf(response)).code]).toEqual([503, 'STORE_FAILED'])
    await app.stop()
    await real.close()
  })
})
