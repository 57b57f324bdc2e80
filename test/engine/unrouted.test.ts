// L2a: on, key and window are called once. If one throws, the event becomes unrouted, is listed, and is retried.
import { describe, expect, test } from 'vitest'
import { Sluice, type FlowOptions, type Run, type Store } from '../../src/index.ts'
import {
  keysOf,
  numbersOf,
  ping,
  play,
  sendNow,
  Shared,
  soon,
  STORES,
  emittedEvents,
  userOf,
  type Declare,
} from './scene.ts'
import { ownFile } from '../temporary-folder.ts'

/** Throws while it is broken. */
class Fault {
  broken = true

  check<T>(value: T): T {
    if (this.broken) throw new TypeError('cannot read it')
    return value
  }
}

const PARTS: readonly (readonly [string, (fault: Fault) => Partial<FlowOptions<Run>>])[] = [
  ['on', (fault) => ({ on: () => fault.check(true) })],
  ['key', (fault) => ({ key: (event) => fault.check(userOf(event)) })],
  ['window', (fault) => ({ window: () => fault.check({ quiet: '1s' as const }) })],
]

function faulty(more: Partial<FlowOptions<Run>>): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...more, run: () => {} })
}

describe.each(STORES)('L2a routed once on %s', (store) => {
  test.each(PARTS)(
    'L2a %s that throws: the event is stored, unrouted, and listed with the error',
    async (_name, part) => {
      const t = await play(store, faulty(part(new Fault())))
      const [published] = await sendNow(t, ping('u', 1))
      expect(published?.kind).toBe('stored')
      expect(t.runs).toEqual([])
      const { items } = await t.app.admin.deadLetters.list({ kind: 'unrouted' })
      expect(items).toMatchObject([{ kind: 'unrouted', flow: 'f', reason: 'key-failed', events: [published?.id] }])
      const [deadLetter] = items
      expect(deadLetter?.kind === 'unrouted' && deadLetter.error).toContain('cannot read it')
      const shown = await t.app.admin.deadLetters.show(deadLetter?.id ?? '')
      expect(shown?.contents.map((event) => event.data)).toEqual([{ user: 'u', n: 1 }])
      expect(emittedEvents(t, 'event.unrouted')[0]?.error).toContain('cannot read it')
    },
  )

  test.each(PARTS)('L2a %s that throws: other flows get the event', async (_name, part) => {
    const t = await play(store, (app) => {
      faulty(part(new Fault()))(app)
      app.flow('good', { on: 'ping', run: () => {} })
    })
    await sendNow(t, ping('u', 1))
    expect(t.runs).toMatchObject([{ flow: 'good', ending: 'done' }])
  })

  test('L2a an unrouted event is retried after each start', async () => {
    const fault = new Fault()
    const t = await play(store, faulty({ key: (event) => fault.check(userOf(event)) }))
    await sendNow(t, ping('u', 1))
    await t.advance('10m')
    fault.broken = false
    await t.crash()
    await t.restart()
    await soon(t)
    expect(numbersOf(t)).toEqual([[1]])
    expect((await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items).toEqual([])
  })

  test('L2a an event that still cannot be routed after a start stays unrouted', async () => {
    const t = await play(store, faulty({ key: (event) => new Fault().check(userOf(event)) }))
    await sendNow(t, ping('u', 1))
    await t.advance('10m')
    await t.crash()
    await t.restart()
    await t.advance('10m')
    expect((await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items).toHaveLength(1)
    expect(t.runs).toEqual([])
  })

  test('L2a an unrouted event that was published with `to` keeps its flow', async () => {
    const fault = { broken: true }
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'other',
        key: (event) => {
          if (fault.broken) throw new Error('broken')
          return userOf(event)
        },
        run: () => {},
      }),
    )
    await sendNow(t, ping('u', 1), { to: 'f' })
    fault.broken = false
    await t.advance('10m')
    await t.crash()
    await t.restart()
    await soon(t)
    expect(keysOf(t)).toEqual(['u'])
  })

  test('L2a an unrouted event can be dropped', async () => {
    const t = await play(store, faulty({ key: (event) => new Fault().check(userOf(event)) }))
    await sendNow(t, ping('u', 1))
    const { items } = await t.app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(await t.app.admin.deadLetters.drop(items[0]?.id ?? '')).toBe('ok')
    expect((await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items).toEqual([])
    expect(await t.app.admin.deadLetters.drop(items[0]?.id ?? '')).toBe('missing')
  })

  test('L2a a new version of a flow applies to events routed after it', async () => {
    let version = 'old'
    const t = await play(store, faulty({ key: () => version, window: { quiet: '10s' } }))
    await t.send(ping('u', 1))
    version = 'new'
    await t.send(ping('u', 2))
    await t.advance('10s')
    expect(t.runs.map((run) => run.key)).toEqual(['old', 'new'])
  })
})

/** Returns a promise that resolves after every timeout. */
const LATE: readonly (readonly [string, object])[] = [
  ['on', { on: () => Promise.resolve(false) }],
  ['on', { on: () => Promise.reject(new Error('looked up')) }],
  ['key', { key: () => Promise.resolve('k') }],
  ['key', { key: () => Promise.reject(new Error('looked up')) }],
  ['key', { key: () => ['a', Promise.reject(new Error('looked up'))] }],
  ['window', { window: () => Promise.resolve({ quiet: '1h' }) }],
  ['window', { window: () => Promise.reject(new Error('looked up')) }],
]

describe.each(STORES)('L2a synchronous on %s', (store) => {
  test.each(LATE)('L2a %s that returns a promise makes the event unrouted (case %#)', async (name, more) => {
    const t = await play(store, faulty(more))
    const [published] = await sendNow(t, ping('u', 1))
    expect(published?.kind).toBe('stored')
    await t.advance('10s')
    expect(t.runs).toEqual([])
    const { items } = await t.app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(items).toMatchObject([{ flow: 'f', reason: 'key-failed', error: expect.stringContaining('synchronous') }])
    expect(items[0]?.kind === 'unrouted' && items[0].error).toContain(`${name} must be synchronous`)
  })
})

/** A store whose calls of `unrouted` wait after their reply while the gate is closed. */
function slowUnrouted(store: Store): { readonly store: Store; close(): void; open(): void } {
  let closed: PromiseWithResolvers<void> | undefined
  return {
    close: () => void (closed = Promise.withResolvers()),
    open: () => closed?.resolve(),
    store: new Proxy(store, {
      get: (target, name): unknown =>
        name === 'claimUnrouted'
          ? async (call: Parameters<Store['claimUnrouted']>[0]) => {
              const reply = await target.claimUnrouted(call)
              await closed?.promise
              return reply
            }
          : (Reflect.get(target, name) as unknown),
    }),
  }
}

describe.each(STORES)('L2a retried by hand on %s', (store) => {
  test('L2a an event that is retried while others are being placed is placed too', async () => {
    const fault = new Fault()
    const ran: string[] = []
    const shared = await Shared.open(store)
    const slow = slowUnrouted(shared.store)
    const app = new Sluice({ log: false, store: slow.store, clock: shared.clock })
    app.flow('f', {
      on: 'ping',
      key: (event) => fault.check(userOf(event)),
      run: ({ key }) => void ran.push(key),
    })
    await app.start()
    await app.publish(ping('u', 1))
    await shared.advance(10_000)
    fault.broken = false
    slow.close()
    await shared.advance(1_000)
    const { items } = await app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(await app.admin.deadLetters.retry(items[0]?.id ?? '')).toBe('ok')
    slow.open()
    await shared.advance(2_000)
    expect(ran).toEqual(['u'])
    await shared.stop(app)
  })
})

describe.each(STORES)('L2a retried by hand in another process on %s', (store) => {
  test('L2a a process that has not started retries the event, and the process that serves the flow places it', async () => {
    const fault = new Fault()
    const ran: string[] = []
    const shared = await Shared.open(store)
    const declare: Declare = (app) =>
      app.flow('f', {
        on: 'ping',
        key: (event) => fault.check(userOf(event)),
        run: ({ key }) => void ran.push(key),
      })
    const works = await shared.process('works', declare)
    await works.publish([ping('u', 1), ping('v', 2)])
    await shared.advance(10_000)
    const operator = new Sluice({ log: false, store: shared.store, clock: shared.clock })
    const { items } = await operator.admin.deadLetters.list({ kind: 'unrouted' })
    fault.broken = false
    expect(await operator.admin.deadLetters.retry(items[1]?.id ?? '')).toBe('ok')
    await shared.advance(1_000)
    expect(ran).toEqual(['u'])
    expect(await operator.admin.deadLetters.list({ kind: 'unrouted' })).toMatchObject({ items: [{ id: items[0]?.id }] })
    await shared.stop(operator)
  })
})

describe('L2a after a real restart, on a file', () => {
  test('L2a an unrouted event survives the process, and the next version places it', async () => {
    const store = ownFile()
    const broken = await play(store, faulty({ key: (event) => new Fault().check(userOf(event)) }))
    await sendNow(broken, ping('u', 1))
    await broken.stop()
    const t = await play(store, faulty({}), { now: Date.UTC(2026, 0, 2) })
    await soon(t)
    expect(t.runs).toMatchObject([{ key: 'u', events: [{ n: 1 }], ending: 'done' }])
  })
})
