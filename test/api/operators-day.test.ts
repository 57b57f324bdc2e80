// A day of an operator who runs the app of the seed: an alert is raised, found and explained; the fault is fixed; the dead letters are
// counted and retried; the alert clears; and the audit log contains all of it.
import { describe, expect, test } from 'vitest'
import { alerts, type Sluice } from '../../src/index.ts'
import { rig, START, STORES } from './rig.ts'

describe.each(STORES)('a day of an operator on %s', (store) => {
  test('everything from the alert to its end can be done with the API alone', async () => {
    const downstream = { isUp: true, stored: 0 }
    const declare = (app: Sluice): void => {
      app.flow('health-metrics', {
        on: 'garmin/*',
        key: (event) => event.subject,
        retry: ['1s', '5s'],
        run: ({ events }) => {
          if (!downstream.isUp) throw new Error('The database refuses connections.')
          downstream.stored += events.length
        },
      })
      app.alert('dead-letters', { when: alerts.deadLetters({ above: 10 }), for: '1m' })
      app.alert('failures', { when: alerts.failureRate({ above: 0.1, window: '24h' }) })
    }
    const r = await rig(store, declare)
    const made = await r.post('/v1/keys', { name: 'ada', role: 'operate' })
    const { secret } = made.body as { secret: string }
    const key = { key: secret }
    const arrive = (from: number, n: number): Promise<unknown> =>
      r.t.send(
        Array.from({ length: n }, (_, at) => ({ source: 'garmin', type: 'sleep', subject: `user-${from + at}` })),
      )
    const alertsNow = async (): Promise<unknown> =>
      ((await r.get('/v1/alerts', key)).body as { items: { name: string; state: string }[] }).items.map(
        ({ name, state }) => [name, state],
      )

    // In the morning, all is well.
    await arrive(0, 30)
    await r.t.advance('1h')
    expect(downstream.stored).toBe(30)
    expect(await alertsNow()).toEqual([
      ['dead-letters', 'clear'],
      ['failures', 'clear'],
    ])

    // At noon, the database is down.
    downstream.isUp = false
    await arrive(100, 12)
    await r.t.advance('5m')
    expect(await alertsNow()).toEqual([
      ['dead-letters', 'raised'],
      ['failures', 'raised'],
    ])

    // The operator looks for what is wrong, for whom, and since when.
    const deadLetters = await r.get('/v1/dead-letters?flow=health-metrics&limit=5', key)
    expect(deadLetters.body).toMatchObject({
      items: Array.from({ length: 5 }, () => ({ flow: 'health-metrics', tries: 3 })),
    })
    const [deadLetter] = (deadLetters.body as { items: { id: string; key: string }[] }).items
    const lane = deadLetter?.key ?? ''
    expect((await r.get(`/v1/dead-letters/${deadLetter?.id}`, key)).body).toMatchObject({
      attempts: [{}, {}, { error: expect.stringContaining('refuses connections') }],
      contents: [{ source: 'garmin', subject: lane }],
    })
    const explained = await r.get(`/v1/explain?flow=health-metrics&key=${lane}`, key)
    expect((explained.body as { text: string }).text).toContain('dead')
    expect((await r.get('/v1/stats?window=24h&by=source,type', key)).body).toMatchObject({
      groups: expect.arrayContaining([
        expect.objectContaining({ source: 'garmin', type: 'sleep', received: 42, dead: 12 }),
      ]),
    })

    // The operator pauses the flow, so that no more events die during the repair; arriving events wait.
    await r.post('/v1/flows/health-metrics/pause', { reason: 'the database is away' }, key)
    await arrive(200, 3)
    await r.t.advance('10m')
    expect((await r.get('/v1/dead-letters/count', key)).body).toMatchObject({ count: 12 })
    downstream.isUp = true
    await r.post('/v1/flows/health-metrics/resume', {}, key)
    expect((await r.post('/v1/dead-letters/retry', { flow: 'health-metrics' }, key)).body).toMatchObject({ count: 12 })
    await r.t.advance('5m')
    expect(downstream.stored).toBe(45)
    expect((await r.get('/v1/dead-letters/count', key)).body).toMatchObject({ count: 0 })
    // There are no dead letters left, and so nothing counts as failed.
    expect(await alertsNow()).toEqual([
      ['dead-letters', 'clear'],
      ['failures', 'clear'],
    ])

    // The audit log shows who did what, and is whole.
    const { items } = (await r.get('/v1/audit', key)).body as { items: { who: string; what: string; at: number }[] }
    const acts = items.filter(({ who, what }) => who === 'ada' && !what.startsWith('requested')).map(({ what }) => what)
    expect(acts.toReversed()).toEqual([
      'done (ok): pause the flow health-metrics: the database is away',
      'done (ok): resume the flow health-metrics',
      'done (count 12): retry the dead letters of {"flow":"health-metrics"}',
    ])
    expect(items.every(({ at }) => at >= START)).toBe(true)
    expect((await r.get('/v1/audit/verify', key)).body).toMatchObject({ kind: 'whole', entries: items.length })
  })
})
