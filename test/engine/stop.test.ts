// L13: stop waits for runs, aborts them after `shutdownTimeout`, and gives back those that then return.
import { describe, expect, test } from 'vitest'
import { SluiceError, type Sluice } from '../../src/index.ts'
import { Gate, ping, play, sendNow, Shared, STORES, userOf } from './scene.ts'

interface Seen {
  readonly starts: string[]
  readonly ids: string[]
}

function handlers(gate: Gate, seen: Seen): (app: Sluice) => unknown {
  return (app) =>
    app.flow('f', {
      on: 'ping',
      key: userOf,
      retry: ['1s'],
      run: async ({ key, id, signal, attempt }) => {
        seen.starts.push(`${key}#${attempt}`)
        seen.ids.push(id)
        await gate.waitFor(key, signal)
      },
    })
}

describe.each(STORES)('L13 stop on %s', (store) => {
  test('L13 stop waits for runs within the timeout', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const seen: Seen = { starts: [], ids: [] }
    const app = await shared.process('a', handlers(gate, seen), { shutdownTimeout: '30s' })
    const ends: string[] = []
    app.onAny((name) => void (name.startsWith('run.') && ends.push(name)))
    await app.publish(ping('u'))
    await shared.advance(10)
    const state = { over: false }
    const stopping = app.stop().then(() => (state.over = true))
    await shared.advance(20_000)
    expect(state.over).toBe(false)
    gate.open('u')
    await shared.settled()
    await stopping
    expect(ends).toEqual(['run.claimed', 'run.started', 'run.done'])
  })

  test('L13 stop claims no more runs', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const seen: Seen = { starts: [], ids: [] }
    const app = await shared.process('a', handlers(gate, seen))
    const other = await shared.process('b', (one) => one.flow('g', { on: 'other', run: () => {} }))
    await app.publish(ping('u'))
    await shared.advance(10)
    const stopping = app.stop()
    await other.publish(ping('late'))
    await shared.advance(2_000)
    expect(seen.starts).toEqual(['u#1'])
    gate.open('u')
    await shared.settled()
    await stopping
  })

  test('L13 stop aborts runs after the timeout and gives them back at once, without using an attempt', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const seen: Seen = { starts: [], ids: [] }
    const app = await shared.process('a', handlers(gate, seen), { shutdownTimeout: '5s' })
    await app.publish(ping('u'))
    await shared.advance(10)
    const before = shared.clock.monotonic()
    await shared.stop(app)
    expect(shared.clock.monotonic() - before).toBe(5_000)
    const later: Seen = { starts: [], ids: [] }
    await shared.process('b', handlers(gate, later))
    await shared.advance(10)
    expect(later.starts).toEqual(['u#1'])
    expect(later.ids).toEqual(seen.ids)
  })

  test('L13 the lease of a handler that ignores its signal lapses after stop, and another process gets the run', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const ran: string[] = []
    const declare = (name: string) => (app: Sluice) =>
      app.flow('f', { on: 'ping', key: userOf, timeout: '1h', run: () => (ran.push(name), gate.wait()) })
    const a = await shared.process('a', declare('a'), { shutdownTimeout: '5s' })
    await a.publish(ping('u'))
    await shared.advance(10)
    await shared.stop(a)
    await shared.process('b', declare('b'))
    await shared.advance(35_000)
    expect(ran).toEqual(['a', 'b'])
  })

  test('L13 stop waits for a run that was being claimed when stop was called', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const heard: string[] = []
    const app = await shared.process('a', (one) => one.flow('f', { on: 'ping', run: () => gate.wait() }))
    app.onAny((name) => void (name.startsWith('run.') && heard.push(name)))
    await shared.advance(1_000)
    await app.publish(ping('u'))
    const stopping = app.stop()
    await shared.advance(10)
    if (gate.waits() > 0) gate.open()
    await shared.settled()
    await stopping
    expect(['run.done', undefined]).toContain(heard.at(-1))
  })

  test('L13 a handler can publish while stop waits for it', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const endings: string[] = []
    const app = await shared.process('a', (one) =>
      one.flow('f', {
        on: 'ping',
        key: userOf,
        run: async ({ key, signal }) => {
          await gate.waitFor(key, signal)
          await one.publish({ type: 'pong', data: { user: key } })
        },
      }),
    )
    app.onAny((name) => void (name.startsWith('run.') && endings.push(name)))
    await app.publish(ping('u'))
    await shared.advance(10)
    const stopping = app.stop()
    gate.open('u')
    await shared.settled()
    await stopping
    expect(endings.at(-1)).toBe('run.done')
    const other = await shared.process('b', (one) => one.flow('f', { on: 'ping', run: () => {} }))
    const { items } = await other.admin.events.list({ type: 'pong' })
    expect(items).toHaveLength(1)
    await expect(app.publish(ping('u'))).rejects.toMatchObject({ code: 'APP_STOPPED' })
  })

  test('L13 after stop no events are accepted', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    await sendNow(t, ping('u'))
    await t.stop()
    const refused = await t.app.publish(ping('u')).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(SluiceError)
    expect((refused as SluiceError).code).toBe('APP_STOPPED')
    await expect(t.app.start()).rejects.toMatchObject({ code: 'APP_STOPPED' })
    await expect(t.app.stop()).resolves.toBeUndefined()
  })
})
