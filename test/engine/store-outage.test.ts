// A store that fails for a while, or permanently: no acknowledged event is lost, nothing runs without a lease, and stop returns.
import { describe, expect, onTestFinished, test } from 'vitest'
import { drop, Sluice, type EventName, type SluiceOptions, type Store } from '../../src/index.ts'
import { Gate, ping, Shared, STORES, userOf, type Declare } from './scene.ts'

/** `rejects` and `silent` apply to the named calls; without names, to all. */
interface Mood {
  is: 'fine' | 'rejects' | 'silent'
  calls?: readonly string[]
  /** A settlement with this reason always fails. */
  chokesOn?: string
  asked: number
}

function moody(store: Store, mood: Mood): Store {
  return new Proxy(store, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      const isMeant = mood.calls?.includes(String(name)) ?? name !== 'listen'
      if (name === 'settleAndClaim' && mood.chokesOn !== undefined) return chokes(target, mood.chokesOn)
      if (mood.is === 'fine' || !isMeant || typeof member !== 'function') return member
      return async (): Promise<unknown> => {
        mood.asked++
        // A failure takes a turn of the event loop, like a real one, so that an immediate retry does not starve others.
        await new Promise((resolve) => setImmediate(resolve))
        if (mood.is === 'silent') return new Promise(() => {})
        throw new Error('the disk is away')
      }
    },
  })
}

function chokes(store: Store, on: string): Store['settleAndClaim'] {
  return async (call) => {
    if (JSON.stringify(call.settle).includes(on)) throw new Error('this cannot be bound')
    return store.settleAndClaim(call)
  }
}

class Trouble {
  readonly shared: Shared
  readonly mood: Mood = { is: 'fine', asked: 0 }
  readonly app: Sluice
  readonly told: EventName[] = []

  private constructor(shared: Shared, declare: Declare, options: Partial<SluiceOptions>) {
    this.shared = shared
    const store = moody(shared.store, this.mood)
    this.app = new Sluice({ log: false, ...options, store, clock: shared.clock })
    declare(this.app)
    this.app.onAny((name) => void this.told.push(name))
  }

  static async begin(store: string, declare: Declare, options: Partial<SluiceOptions> = {}): Promise<Trouble> {
    const t = new Trouble(await Shared.open(store), declare, options)
    await t.app.start()
    onTestFinished(async () => {
      t.mood.is = 'fine'
      await t.stopped()
    })
    await t.shared.advance(2_000)
    return t
  }

  of(...names: readonly EventName[]): readonly EventName[] {
    return this.told.filter((name) => names.includes(name))
  }

  /** How long stop took, in virtual time; at most a minute. */
  async stopped(): Promise<number> {
    const began = this.shared.clock.monotonic()
    const state = { ended: Infinity }
    void this.app.stop().then(() => (state.ended = this.shared.clock.monotonic()))
    for (let n = 0; n < 60 && state.ended === Infinity; n++) await this.shared.advance(1_000)
    return state.ended - began
  }
}

/** A flow in which a tenant's only permit is never returned, and a flow that is always busy. */
const stuckAndBusy: Declare = (app) => {
  app.flow('f', { on: 'ping', key: userOf, share: 'tenant', concurrency: 1, run: () => new Promise(() => {}) })
  app.flow('g', { on: 'pong', run: () => {} })
}

const simple: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {} })

/** The handler waits at its key, or for the signal. */
function gated(gate: Gate, more: { readonly concurrency?: number } = {}): Declare {
  return (app) =>
    app.flow('f', {
      on: 'ping',
      key: userOf,
      timeout: '1h',
      ...more,
      run: ({ key, signal }) => gate.waitFor(key, signal),
    })
}

describe.each(STORES)('a store that fails for a while on %s', (store) => {
  test('publish rejects with the error of the store, and works again afterwards', async () => {
    const t = await Trouble.begin(store, simple)
    t.mood.is = 'rejects'
    await expect(t.app.publish(ping('u', 1))).rejects.toThrow('the disk is away')
    t.mood.is = 'fine'
    expect(await t.app.publish(ping('u', 2))).toMatchObject([{ kind: 'stored' }])
    await t.shared.advance(2_000)
    expect(t.of('run.done')).toHaveLength(1)
  })

  test('store.lost and store.found are emitted once each, with the duration', async () => {
    const t = await Trouble.begin(store, simple)
    const found: number[] = []
    t.app.on('store.found', ({ ms }) => void found.push(ms))
    t.mood.is = 'rejects'
    await t.shared.advance(60_000)
    expect(t.of('store.lost', 'store.found')).toEqual(['store.lost'])
    t.mood.is = 'fine'
    await t.shared.advance(10_000)
    expect(t.of('store.lost', 'store.found')).toEqual(['store.lost', 'store.found'])
    expect(Math.abs((found[0] ?? 0) - 60_000)).toBeLessThan(3_000)
  })

  test('events that were stored before run afterwards', async () => {
    const t = await Trouble.begin(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, run: () => {} }),
    )
    await t.app.publish([ping('u', 1), ping('v', 1)])
    t.mood.is = 'rejects'
    await t.shared.advance(60_000)
    expect(t.of('run.started')).toEqual([])
    t.mood.is = 'fine'
    await t.shared.advance(3_000)
    expect(t.of('run.done')).toHaveLength(2)
  })

  test('a settlement waits for the store and then counts, so nothing runs twice', async () => {
    const gate = new Gate()
    const t = await Trouble.begin(store, gated(gate))
    await t.app.publish(ping('u', 1))
    await t.shared.advance(10)
    t.mood.is = 'rejects'
    gate.open('u')
    await t.shared.advance(15_000)
    expect(t.of('run.done')).toEqual([])
    t.mood.is = 'fine'
    await t.shared.advance(120_000)
    expect(t.of('run.started', 'run.done', 'run.lost', 'run.retry')).toEqual(['run.started', 'run.done'])
    expect((await t.app.explain('f', 'u')).state).toBe('empty')
  })

  test('a settlement whose reply was lost is not repeated', async () => {
    const published: number[] = []
    const shared = await Shared.open(store)
    const state = { drop: 1 }
    const deaf = new Proxy(shared.store, {
      get: (target, name): unknown =>
        name === 'settleAndClaim'
          ? async (call: Parameters<Store['settleAndClaim']>[0]) => {
              const reply = await target.settleAndClaim(call)
              if (call.settle.length > 0 && state.drop-- > 0) throw new Error('the answer was lost')
              return reply
            }
          : (Reflect.get(target, name) as unknown),
    })
    const app = new Sluice({ log: false, store: deaf, clock: shared.clock })
    app.flow('f', { on: 'ping', key: userOf, run: (run) => run.publish({ type: 'pong', data: {} }) })
    app.flow('g', { on: 'pong', run: ({ events }) => void published.push(events.length) })
    const done: string[] = []
    app.on('run.done', ({ flow }) => void done.push(flow))
    await app.start()
    onTestFinished(() => shared.stop(app))
    await app.publish(ping('u', 1))
    await shared.advance(60_000)
    expect(state.drop).toBeLessThan(0)
    expect(done).toEqual(['f', 'g'])
    expect(published).toEqual([1])
  })

  test('a settlement after the end of the lease is lost, and the run returns', async () => {
    const gate = new Gate()
    const t = await Trouble.begin(store, gated(gate))
    await t.app.publish(ping('u', 1))
    await t.shared.advance(10)
    t.mood.is = 'rejects'
    gate.open('u')
    await t.shared.advance(60_000)
    t.mood.is = 'fine'
    await t.shared.advance(5_000)
    expect(t.of('run.started', 'run.done', 'run.lost')).toEqual(['run.started', 'run.lost', 'run.started'])
    gate.open('u')
    await t.shared.advance(5_000)
    expect(t.of('run.done')).toHaveLength(1)
  })

  test.each(['rejects', 'silent'] as const)(
    'L1 a run whose lease cannot be renewed is aborted before the lease ends (%s)',
    async (is) => {
      const aborted: number[] = []
      const t = await Trouble.begin(store, (app) =>
        app.flow('f', {
          on: 'ping',
          key: userOf,
          timeout: '1h',
          run: async ({ signal }) => {
            await new Gate().waitFor('', signal).catch(() => {})
            aborted.push(t.shared.clock.monotonic())
          },
        }),
      )
      await t.app.publish(ping('u', 1))
      const began = t.shared.clock.monotonic()
      await t.shared.advance(15_000)
      t.mood.is = is
      await t.shared.advance(60_000)
      expect(aborted).toHaveLength(1)
      // The lease was renewed at 10 s, so it ends at 40 s; the signal of the run is aborted 2 s earlier.
      expect((aborted[0] ?? 0) - began).toBeGreaterThan(36_000)
      expect((aborted[0] ?? 0) - began).toBeLessThanOrEqual(38_010)
      expect(t.of('run.lost')).toHaveLength(1)
    },
  )

  test('L13 stop returns although the store rejects everything', async () => {
    const t = await Trouble.begin(store, gated(new Gate()), { shutdownTimeout: '5s' })
    await t.app.publish(ping('u', 1))
    await t.shared.advance(10)
    t.mood.is = 'rejects'
    expect(await t.stopped()).toBeLessThanOrEqual(25_000)
    // The pause before the next retry may still be running.
    await t.shared.advance(1_000)
    expect(t.shared.clock.next()).toBeUndefined()
  })

  test('L13 stop returns although the calls of the loop get no reply', async () => {
    const t = await Trouble.begin(store, gated(new Gate(), { concurrency: 2 }), { shutdownTimeout: '5s' })
    await t.app.publish(ping('u', 1))
    await t.shared.advance(10)
    Object.assign(t.mood, { is: 'silent', calls: ['settleAndClaim', 'renew', 'leasePermits'] })
    expect(await t.stopped()).toBeLessThanOrEqual(25_000)
    expect(t.shared.clock.next()).toBeUndefined()
  })

  // Regression: stop waited without a bound for a maintenance task whose call got no reply.
  test('L13 stop returns although no call gets a reply', async () => {
    const t = await Trouble.begin(store, gated(new Gate()), { shutdownTimeout: '5s' })
    await t.app.publish(ping('u', 1))
    t.mood.is = 'silent'
    await t.shared.advance(20_000)
    expect(await t.stopped()).toBeLessThanOrEqual(25_000)
    expect(t.shared.clock.next()).toBeUndefined()
  })

  // Regression: after a failed call for permits the loop retried without a pause.
  test('a store that rejects permits is asked again after a pause, not at once', async () => {
    const gate = new Gate()
    const t = await Trouble.begin(store, gated(gate, { concurrency: 1 }))
    await t.app.publish(ping('u', 1))
    Object.assign(t.mood, { is: 'rejects', calls: ['leasePermits'] })
    await t.shared.advance(10_000)
    expect(t.mood.asked).toBeLessThan(60)
    t.mood.is = 'fine'
    await t.shared.advance(2_000)
    expect(gate.waits('u')).toBe(1)
  })

  // Regression: an ended run was part of the call that waited for permits.
  test('ended runs are settled while permits are unavailable', async () => {
    const gate = new Gate()
    const t = await Trouble.begin(store, (app) => {
      app.flow('free', { on: 'ping', key: userOf, run: () => gate.wait('free') })
      app.flow('scarce', { on: 'ping', key: userOf, concurrency: 1, window: { quiet: '1s' }, run: () => {} })
    })
    await t.app.publish(ping('u', 1))
    await t.shared.advance(10)
    expect(gate.waits('free')).toBe(1)
    Object.assign(t.mood, { is: 'rejects', calls: ['leasePermits'] })
    await t.shared.advance(30_000)
    gate.open('free')
    await t.shared.advance(1)
    expect(t.of('run.done')).toHaveLength(1)
  })

  // Regression: a call with a settlement that the store always rejects was repeated forever, and nothing else ran.
  test('a settlement that the store always rejects costs its own run, and delays no other', async () => {
    const gate = new Gate()
    const t = await Trouble.begin(store, (app) => {
      app.flow('f', {
        on: 'ping',
        key: userOf,
        run: async ({ key }) => {
          await gate.wait(key)
          return key === 'bad' ? drop('poison') : undefined
        },
      })
    })
    t.mood.chokesOn = 'poison'
    await t.app.publish([ping('bad', 1), ping('good', 1)])
    await t.shared.advance(10)
    gate.open('bad')
    gate.open('good')
    await t.shared.advance(20_000)
    await t.app.publish(ping('later', 1))
    await t.shared.advance(10)
    gate.open('later')
    await t.shared.advance(20_000)
    expect(t.of('run.done')).toHaveLength(2)
    expect(t.of('run.lost').length).toBeGreaterThan(0)
  })

  // Regression: a busy process never checked for it, and an expiring lease wakes no process.
  test('a busy process also checks for lanes that no longer progress', async () => {
    const shared = await Shared.open(store)
    const mood: Mood = { is: 'fine', asked: 0 }
    const options = { log: false, clock: shared.clock, lease: '3s', heartbeat: '1s' } as const
    const dying = new Sluice({ ...options, store: moody(shared.store, mood) })
    stuckAndBusy(dying)
    await dying.start()
    await dying.publish([
      { ...ping('a', 1), tenant: 't' },
      { ...ping('b', 1), tenant: 't' },
    ])
    await shared.advance(50)
    const busy = new Sluice({ ...options, store: shared.store })
    stuckAndBusy(busy)
    let begun = 0
    busy.on('run.started', ({ flow }) => void (flow === 'f' && begun++))
    await busy.start()
    onTestFinished(async () => {
      mood.is = 'fine'
      void dying.stop()
      void busy.stop()
      await shared.advance(60_000)
    })
    mood.is = 'silent'
    for (let n = 0; n < 50; n++) {
      await busy.publish({ type: 'pong' })
      await shared.advance(200)
    }
    expect(begun).toBe(1)
  })
})
