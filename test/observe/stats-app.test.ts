// Stats of a whole app: after a bad hour, they show what really happened.
import { describe, expect, it, onTestFinished } from 'vitest'
import { drop, partial, PermanentError, Sluice, type FlowEvent } from '../../src/index.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { START, STORES } from './stats-scene.ts'

async function opened(store: string, declare: (app: Sluice) => unknown): Promise<TestApp> {
  const app = new Sluice({ store: 'memory:', log: false })
  declare(app)
  const t = await testApp(app, { store, now: START })
  onTestFinished(() => t.stop())
  return t
}

/** The stats and metrics of an app. */
const figures = ({ app }: TestApp): Sluice['admin'] => app.admin

const key = ({ subject = '' }: FlowEvent): string => subject

const fails = (): never => {
  throw new Error('no')
}

describe.each(STORES)('stats of an app on %s', (store) => {
  it('an hour, by source and type and by flow', async () => {
    const t = await opened(store, (app) =>
      app
        .flow('bill', { on: 'shop/paid', window: { quiet: '10s' }, key: () => 'k', run: () => {} })
        .flow('mail', { on: 'shop/*', retry: { delays: ['20m', '20m'], jitter: 0 }, run: fails })
        .flow('dead', {
          on: 'garmin/sleep',
          run: () => {
            throw new PermanentError('never')
          },
        }),
    )
    await t.send([
      { source: 'shop', type: 'paid' },
      { source: 'shop', type: 'paid' },
      { source: 'garmin', type: 'sleep' },
    ])
    await t.advance('1m')
    const { total, groups } = await figures(t).stats({ window: '1h', by: 'source,type' })
    expect(total).toMatchObject({
      received: 3,
      done: 2,
      dead: 1,
      failing: 2,
      failureRate: 3 / 5,
      meanMs: 10_000,
      depth: 2,
    })
    expect(total.oldest).toBe(START)
    expect(groups).toMatchObject([
      { source: 'garmin', type: 'sleep', received: 1, dead: 1, failureRate: 1 },
      { source: 'shop', type: 'paid', received: 2, done: 2, failing: 2, failureRate: 0.5 },
    ])
    expect(groups[0]).not.toHaveProperty('depth')
    expect((await figures(t).stats({ window: '1h', by: 'flow' })).groups).toMatchObject([
      { flow: 'bill', received: 2, done: 2, failing: 0, depth: 0 },
      { flow: 'dead', received: 1, dead: 1, depth: 0 },
      { flow: 'mail', received: 2, done: 0, failing: 2, failureRate: 1, depth: 2, oldest: START },
    ])
    await t.advance('1h')
    expect((await figures(t).stats({ window: '2h' })).total).toMatchObject({ dead: 3, failing: 0, depth: 0 })
  })

  it('parts, drops, crashes and manual retries', async () => {
    let mended = false
    const t = await opened(store, (app) =>
      app
        .flow('parts', {
          on: 'parts',
          key: () => 'k',
          window: { quiet: '1s' },
          run: ({ events }) =>
            mended ? undefined : partial({ failed: [{ id: events[0]?.id ?? '', reason: 'no', permanent: true }] }),
        })
        .flow('drops', { on: 'drops', run: () => drop('no') })
        .flow('hangs', { on: 'hangs', run: () => new Promise(() => {}) }),
    )
    await t.send([{ type: 'parts' }, { type: 'parts' }, { type: 'parts' }, { type: 'drops' }])
    await t.advance('2s')
    expect((await figures(t).stats()).total).toMatchObject({ received: 4, done: 2, dead: 1, dropped: 1 })
    mended = true
    const { items } = await t.app.admin.deadLetters.list()
    await t.app.admin.deadLetters.retry(items[0]?.id ?? '')
    await t.advance('2s')
    expect((await figures(t).stats()).total).toMatchObject({ done: 3, dead: 0 })
    await t.send({ type: 'hangs', source: 'shop' })
    for (let n = 0; n < 4; n++) {
      await t.crash()
      await t.advance('1m')
      await t.restart()
      await t.advance('1m')
    }
    const { groups } = await figures(t).stats({ by: 'source,type' })
    expect(groups.find(({ type }) => type === 'hangs')).toMatchObject({ source: 'shop', received: 1, dead: 1 })
  })

  it('a failure no longer counts once it is retried, dropped or purged by hand', async () => {
    let isUp = false
    const run = (): void => {
      if (!isUp) throw new Error('no')
    }
    const t = await opened(store, (app) =>
      app.flow('dies', { on: 'die', key, retry: [], run }).flow('fails', { on: 'fail', key, retry: ['5h'], run }),
    )
    await t.send([
      ...['a', 'b', 'c'].map((subject) => ({ type: 'die', subject })),
      ...['a', 'b', 'c', 'd'].map((subject) => ({ type: 'fail', subject })),
    ])
    await t.advance('1m')
    expect((await figures(t).stats()).total).toMatchObject({ dead: 3, failing: 4, failureRate: 1 })
    await t.app.admin.lanes.drop('fails', 'a')
    await t.app.admin.lanes.drop('fails', 'b')
    await t.app.admin.purge({ flow: 'fails', key: 'c' })
    expect((await figures(t).stats()).total).toMatchObject({ dead: 3, failing: 1 })
    isUp = true
    await t.app.admin.deadLetters.retry({})
    await t.app.admin.lanes.runNow('fails', 'd')
    await t.advance('1m')
    const { total, groups } = await figures(t).stats({ by: 'flow' })
    expect(total).toMatchObject({ dead: 0, deadPerDay: 0, failing: 0, done: 4, failureRate: 0 })
    expect(groups).toMatchObject([
      { flow: 'dies', dead: 0, done: 3, failureRate: 0 },
      { flow: 'fails', failing: 0, done: 1, failureRate: 0 },
    ])
  })

  it('a delayed event counts when its time has come, and is no depth before', async () => {
    const t = await opened(store, (app) => app.flow('f', { on: 'x', run: () => {} }))
    await t.send({ type: 'x' }, { at: START + 3_600_000 })
    expect((await figures(t).stats()).total).toMatchObject({ received: 0, done: 0, depth: 0 })
    await t.advance('1h')
    expect((await figures(t).stats()).total).toMatchObject({ received: 1, done: 1 })
  })

  it('an open window is depth, and is not late', async () => {
    const t = await opened(store, (app) => app.flow('f', { on: 'x', window: { quiet: '1h' }, run: () => {} }))
    await t.send([{ type: 'x' }, { type: 'x' }])
    expect((await figures(t).stats()).total).toMatchObject({ depth: 2, oldest: undefined })
  })

  it('a day of waiting passes without a write or a timer for stats', async () => {
    const t = await opened(store, (app) => app.flow('f', { on: 'x', run: () => {} }))
    await t.send({ type: 'x' })
    await t.advance('7d')
    expect((await figures(t).stats({ window: '7d' })).total.received).toBe(1)
    await t.advance('9d')
    expect((await figures(t).stats({ window: '7d' })).total.received).toBe(0)
  })

  it('metrics of the whole app: attempts, lanes, the store, and no key', async () => {
    const t = await opened(store, (app) =>
      app
        .flow('f', { on: 'x', key: () => 'secret-key', run: () => {} })
        .flow('waits', { on: 'x', key: () => 'secret-key', window: { quiet: '1h' }, run: () => {} }),
    )
    await t.send({ type: 'x', source: 'shop', tenant: 'acme', id: 'event-id' })
    const text = await figures(t).metrics()
    for (const line of [
      'sluice_events_received_total{source="shop"} 1',
      'sluice_attempts_total{flow="f",ending="done"} 1',
      'sluice_dead_letters_total{flow="f"} 0',
      'sluice_arrival_to_done_seconds_count{flow="f"} 1',
      'sluice_lanes{flow="waits",state="waiting"} 1',
      'sluice_store_up 1',
    ])
      expect(text).toContain(`\n${line}\n`)
    expect(text).toMatch(/\nsluice_store_seconds_count\{member="append"\} 1\n/)
    for (const secret of ['secret-key', 'acme', 'event-id']) expect(text).not.toContain(secret)
  })
})

describe('reruns', () => {
  it('are counted if events arrive while their lane runs', async () => {
    const gate = Promise.withResolvers<void>()
    const t = await opened('memory:', (app) =>
      app.flow('f', { on: 'x', key: () => 'k', whileRunning: 'requeue', run: () => gate.promise }),
    )
    await t.send({ type: 'x' })
    await t.send({ type: 'x' })
    await t.advance('1s')
    gate.resolve()
    await t.settled()
    expect(await figures(t).metrics()).toContain('\nsluice_reruns_total{flow="f"} 1\n')
  })
})
