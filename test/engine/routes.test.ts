// L18: flows are in the store under one epoch. A publishing process knows the flows of all processes without a restart.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice, type EventMap, type Store } from '../../src/index.ts'
import { Gate, ping, Shared, START, STORES, userOf, type Declare } from './scene.ts'

class Ran {
  readonly all: string[] = []

  /** A flow that records its runs as `name:key`. */
  flow(name: string, on: string | readonly string[] = 'ping'): Declare {
    return (app) => app.flow(name, { on, key: userOf, run: ({ key }) => void this.all.push(`${name}:${key}`) })
  }

  take(): readonly string[] {
    return this.all.splice(0).toSorted()
  }
}

const pong = (user: string): { type: string; data: { user: string } } => ({ type: 'pong', data: { user } })

function conflictsOf(app: Sluice): EventMap['config.conflict'][] {
  const heard: EventMap['config.conflict'][] = []
  app.on('config.conflict', (what) => void heard.push(what))
  return heard
}

/** A store whose calls of settleAndClaim wait while the gate is closed. */
function slowTurns(store: Store): { readonly store: Store; close(): void; open(): void } {
  let closed: PromiseWithResolvers<void> | undefined
  return {
    close: () => void (closed = Promise.withResolvers()),
    open: () => closed?.resolve(),
    store: new Proxy(store, {
      get: (target, name): unknown =>
        name === 'settleAndClaim'
          ? async (call: Parameters<Store['settleAndClaim']>[0]) => {
              await closed?.promise
              return target.settleAndClaim(call)
            }
          : (Reflect.get(target, name) as unknown),
    }),
  }
}

describe.each(STORES)('L18 routes on %s', (store) => {
  test('L18 a flow of a second process gets events that the first publishes afterwards, within a second', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = await shared.process('a', ran.flow('one'))
    await a.publish(ping('before'))
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['one:before'])
    await shared.process('b', ran.flow('two'))
    await a.publish(ping('after'))
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['one:after', 'two:after'])
  })

  test('L18 this also holds for a batch, for `to`, and for a new flow that takes only some events', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = await shared.process('a', ran.flow('one'))
    await shared.process('b', ran.flow('two', 'pong'))
    await a.publish([ping('x'), pong('y')])
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['one:x', 'two:y'])
    await a.publish(ping('z'), { to: 'two' })
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['two:z'])
  })

  test('L18 the second process also knows the flows of the first', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    await shared.process('a', ran.flow('one'))
    const b = await shared.process('b', ran.flow('two'))
    await b.publish(ping('u'))
    await shared.advance(120_000)
    expect(ran.take()).toEqual(['one:u', 'two:u'])
  })

  test('L18 a process that only publishes, and never started, knows the flows of others', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    await shared.process('a', ran.flow('one'))
    const sender = new Sluice({ log: false, store: shared.store, clock: shared.clock })
    await sender.publish(ping('u'))
    await shared.process('b', ran.flow('two'))
    await sender.publish(ping('v'))
    await shared.advance(120_000)
    expect(ran.take()).toEqual(['one:u', 'one:v', 'two:v'])
  })

  test('L18 a new version of a flow with other globs replaces the old one', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const sender = await shared.process('sender', (app) => app.flow('none', { on: 'none', run: () => {} }))
    const old = await shared.process('old', ran.flow('f', 'ping'))
    await shared.stop(old)
    await shared.process('new', ran.flow('f', 'pong'))
    await sender.publish([ping('x'), pong('y')])
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['f:y'])
  })

  test('L18 config.conflict names a flow that two live processes declare with different globs', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    await shared.process('a', ran.flow('f', 'ping'))
    const b = new Sluice({ log: false, store: shared.store, clock: shared.clock, process: 'b' })
    ran.flow('f', 'pong')(b)
    const heard = conflictsOf(b)
    await b.start()
    onTestFinished(() => shared.stop(b))
    expect(heard).toMatchObject([{ flow: 'f' }])
    expect(heard[0]?.text).toContain('a-')
  })

  test('L18 the same globs are no conflict, however often they are declared', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = conflictsOf(await shared.process('a', ran.flow('f', ['ping', 'pong'])))
    const b = conflictsOf(await shared.process('b', ran.flow('f', ['ping', 'pong'])))
    await shared.advance(10 * 60_000)
    expect([...a, ...b]).toEqual([])
  })

  test('L18 L2b an event that a run publishes reaches a flow that was added during the run', async () => {
    const gate = new Gate()
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = await shared.process('a', (app) => {
      app.flow('first', {
        on: 'ping',
        key: userOf,
        run: async (run) => {
          await gate.wait()
          run.publish(pong(run.key))
        },
      })
      ran.flow('one', 'pong')(app)
    })
    await a.publish(ping('u'))
    await shared.advance(100)
    await shared.process('b', ran.flow('two', 'pong'))
    gate.open()
    // The settlement has old routes: the event is unrouted, and a process with the new routes places it.
    await shared.advance(120_000)
    expect(ran.take()).toEqual(['one:u', 'two:u'])
  })
})

describe.each(STORES)('L18 regressions on %s', (store) => {
  // Regression: the retry of a `routes-old` event got `routes-old` again, and nothing read the new routes for 30 s.
  test('L2 L18 an event that was published with old routes is placed within a second', async () => {
    const gate = new Gate()
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = await shared.process('a', (app) => {
      app.flow('first', {
        on: 'ping',
        key: userOf,
        run: async (run) => {
          await gate.wait()
          run.publish(pong(run.key))
        },
      })
      ran.flow('one', 'pong')(app)
    })
    await a.publish(ping('u'))
    await shared.advance(100)
    await shared.process('b', ran.flow('two', 'pong'))
    gate.open()
    await shared.advance(2_000)
    expect(ran.take()).toEqual(['one:u', 'two:u'])
  })

  // Regression: the event counted as taken by a flow with a predicate in another process, and its predicate was never called.
  test('L18 the predicate of a flow is called in its own process', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = await shared.process('a', ran.flow('one'))
    await shared.process('b', (app) =>
      app.flow('picky', {
        on: (event) => userOf(event) === 'yes',
        key: userOf,
        run: ({ key }) => void ran.all.push(`picky:${key}`),
      }),
    )
    await a.publish([ping('yes'), ping('no')])
    await shared.advance(120_000)
    expect(ran.take()).toEqual(['one:no', 'one:yes', 'picky:yes'])
  })

  // Regression: the epoch was read when the call was sent, but the placements of published events were computed earlier.
  test('L18 L2b events that a run published with old routes do not count as routed with new ones', async () => {
    const ran = new Ran()
    const gate = new Gate()
    const shared = await Shared.open(store)
    const turns = slowTurns(shared.store)
    const a = new Sluice({ log: false, store: turns.store, clock: shared.clock, process: 'a' })
    a.flow('first', {
      on: 'ping',
      key: userOf,
      run: async (run) => {
        await gate.wait(run.key)
        run.publish(pong(run.key))
      },
    })
    await a.start()
    onTestFinished(() => shared.stop(a))
    await a.publish([ping('u'), ping('v')])
    await shared.advance(100)
    // The call that settles `u` takes long. Meanwhile `v` ends, a flow is added, and `a` learns of it.
    turns.close()
    gate.open('u')
    await shared.advance(10)
    gate.open('v')
    await shared.advance(10)
    await shared.process('b', ran.flow('two', 'pong'))
    await a.publish({ type: 'else', data: {} })
    turns.open()
    await shared.advance(120_000)
    expect(ran.take()).toEqual(['two:u', 'two:v'])
  })

  // Regression: the older process wrote its own globs again every minute, although the newest start decides.
  test('L18 of two processes in conflict the newest start decides, and each reports the conflict once', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const a = conflictsOf(await shared.process('a', ran.flow('f', 'ping')))
    const b = conflictsOf(await shared.process('b', ran.flow('f', 'pong')))
    const sender = await shared.process('sender', (app) => app.flow('none', { on: 'none', run: () => {} }))
    await shared.advance(90_000)
    await sender.publish([ping('x'), pong('y')])
    await shared.advance(600_000)
    expect(ran.take()).toEqual(['f:y'])
    expect([...a, ...b].length).toBeLessThanOrEqual(2)
  })
})

const WEEK = 7 * 86_400_000

async function unroutedOf(app: Sluice): Promise<readonly string[]> {
  return (await app.admin.deadLetters.list({ kind: 'unrouted' })).items.map((deadLetter) => deadLetter.flow)
}

describe.each(STORES)('L18 flows that no longer exist, on %s', (store) => {
  test('L18 a removed schedule creates no unrouted events', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const old = await shared.process('old', (app) => {
      ran.flow('one')(app)
      app.every('sweep', '1h', () => {})
    })
    await shared.stop(old)
    const a = await shared.process('new', ran.flow('one'))
    await a.publish(ping('u'))
    await shared.advance(1_000)
    expect(ran.take()).toEqual(['one:u'])
    expect(await unroutedOf(a)).toEqual([])
  })

  test('L18 neither does a schedule of an earlier version, which was not declared as internal', async () => {
    const shared = await Shared.open(store)
    const body = Buffer.from(JSON.stringify({ globs: null, by: 'earlier', servedAt: START }))
    const writes = ['every/sweep', 'sluice.delayed'].map((id) => ({ kind: 'flow', id, ifRev: 0, body }))
    await shared.store.writeDocs({ writes, raiseRoutes: true, audit: undefined })
    const sender = new Sluice({ log: false, store: shared.store, clock: shared.clock })
    await sender.publish(ping('u'))
    expect(await unroutedOf(sender)).toEqual([])
  })

  test('L19 a schedule of another process counts as served', async () => {
    const shared = await Shared.open(store)
    await shared.process('ticks', (app) => app.every('sweep', '30s', () => new Promise(() => {})))
    const a = await shared.process('a', (app) => app.flow('one', { on: 'ping', run: () => {} }))
    const unserved: unknown[] = []
    a.on('flow.unserved', (what) => void unserved.push(what))
    await shared.advance(200_000)
    expect(unserved).toEqual([])
  })

  test('L18 a flow that no process has served for a week gets no more unrouted events', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const old = await shared.process('old', ran.flow('gone'))
    await shared.stop(old)
    const a = await shared.process('a', ran.flow('one'))
    await a.publish(ping('u'))
    expect(await unroutedOf(a)).toEqual(['gone'])
    shared.clock.set(START + WEEK + 60_000)
    await shared.advance(60_000)
    await a.publish(ping('v'))
    await shared.advance(1_000)
    expect(await unroutedOf(a)).toEqual(['gone'])
    expect(ran.take()).toEqual(['one:u', 'one:v'])
  })

  test('L23 unrouted events of a removed flow expire like dead letters, and then the event can be deleted', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const old = await shared.process('old', ran.flow('gone'))
    await shared.stop(old)
    const keep = { deadLetters: '30d', events: '1d' } as const
    const a = await shared.process('a', ran.flow('one'), { keep, dedupe: '1d' })
    const [published] = await a.publish(ping('u'))
    shared.clock.set(START + 29 * 86_400_000)
    await shared.advance(60_000)
    expect(await unroutedOf(a)).toEqual(['gone'])
    shared.clock.set(START + 31 * 86_400_000)
    await shared.advance(60_000)
    expect(await unroutedOf(a)).toEqual([])
    const { item } = await shared.store.get({ kind: 'events', id: published?.id ?? '' })
    expect(item).toBeUndefined()
  })

  test('L23 a flow that is away for a while loses nothing, however short dead letters are kept', async () => {
    const ran = new Ran()
    const shared = await Shared.open(store)
    const old = await shared.process('old', ran.flow('away'))
    await shared.stop(old)
    const a = await shared.process('a', ran.flow('one'), { keep: { deadLetters: '1s' } })
    await a.publish(ping('u'))
    shared.clock.set(START + 6 * 86_400_000)
    await shared.advance(60_000)
    await shared.process('back', ran.flow('away'))
    await shared.advance(2_000)
    expect(ran.take()).toEqual(['away:u', 'one:u'])
  })
})
