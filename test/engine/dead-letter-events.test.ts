// `sluice/run.dead`: a dead letter as an event that flows take, once for each death, and never about news of the engine itself.
import { describe, expect, test } from 'vitest'
import { PermanentError, partial, type Sluice } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { emittedEvents, Gate, ping, play, sendNow, Shared, soon, STORES, userOf } from './scene.ts'

type Data = Readonly<Record<string, unknown>>

function fails(): never {
  throw new PermanentError('No such user.')
}

function withFailing(app: Sluice): Sluice {
  return app.flow('fails', { on: 'ping', key: userOf, run: fails })
}

function withNews(app: Sluice, on = 'sluice/run.dead'): Sluice {
  return withFailing(app).flow('news', { on, run: () => {} })
}

function newsOf(t: TestApp): readonly Data[] {
  return t.runs.filter(({ flow }) => flow === 'news').flatMap(({ events }) => events as readonly Data[])
}

async function storedNews(app: Sluice): Promise<readonly string[]> {
  const { items } = await app.admin.events.list({ source: 'sluice' })
  return items.map(({ type }) => type)
}

describe.each(STORES)('sluice/run.dead on %s', (store) => {
  test('a flow gets one event for a dead letter, with its id, its error and its events', async () => {
    const t = await play(store, withNews)
    const [sent] = await sendNow(t, { ...ping('ada'), tenant: 'acme' })
    await soon(t)
    const [deadLetter] = (await t.app.admin.deadLetters.list()).items
    expect(newsOf(t)).toEqual([
      {
        deadLetter: deadLetter?.id,
        run: t.runs[0]?.id,
        flow: 'fails',
        key: 'ada',
        tenant: 'acme',
        reason: 'PermanentError: No such user.',
        error: 'PermanentError: No such user.',
        attempts: 1,
        crashes: 0,
        events: [{ id: sent?.id, source: 'app', type: 'ping', subject: null }],
        eventCount: 1,
        firstFailedAt: deadLetter?.at,
        at: deadLetter?.at,
      },
    ])
    const [event] = (await t.app.admin.events.list({ source: 'sluice' })).items
    expect(event).toMatchObject({ type: 'run.dead', tenant: 'acme', subject: 'ada' })
    expect(emittedEvents(t, 'event.received')).toContainEqual(
      expect.objectContaining({ event: event?.id, type: 'run.dead', flows: ['news'] }),
    )
  })

  test('without a flow that takes it, no event is stored', async () => {
    const t = await play(store, (app) => withNews(app, 'sluice/alert.*'))
    await sendNow(t, ping('ada'))
    await t.advance('1m')
    expect(t.runs).toHaveLength(1)
    expect(await storedNews(t.app)).toEqual([])
  })

  test.each([
    ['flow', 'run.dead', true],
    ['flow', 'sluice/*', true],
    ['delivery', 'sluice/run.dead', true],
    ['delivery', 'run.dead', false],
    ['delivery', '**', false],
    ['delivery', 'a predicate', false],
  ])('a %s on %s is a taker: %s', async (kind, on, isTaker) => {
    const wanted = on === 'a predicate' ? (): boolean => true : on
    const t = await play(store, (app) =>
      kind === 'flow' ? withNews(app, on) : withFailing(app).delivery('news', { on: wanted }),
    )
    await sendNow(t, ping('ada'))
    await soon(t)
    expect(await storedNews(t.app)).toEqual(isTaker ? ['run.dead'] : [])
  })

  test('each death of a retried dead letter is another event', async () => {
    const t = await play(store, withNews)
    await sendNow(t, ping('ada'))
    await soon(t)
    const [first] = newsOf(t)
    expect(await t.app.admin.deadLetters.retry(String(first?.['deadLetter']))).toBe('ok')
    await soon(t)
    await soon(t)
    expect(newsOf(t).map(({ deadLetter }) => deadLetter)).toEqual([first?.['deadLetter'], first?.['deadLetter']])
    expect(await storedNews(t.app)).toEqual(['run.dead', 'run.dead'])
  })

  test('a run that accepted a part is announced with the events that died', async () => {
    const t = await play(store, (app) =>
      app
        .flow('fails', {
          on: 'ping',
          key: userOf,
          window: { quiet: '1s' },
          run: ({ events }) =>
            partial({ failed: [{ id: events[1]?.id ?? '', reason: 'The second is bad.', permanent: true }] }),
        })
        .flow('news', { on: 'sluice/run.dead', run: () => {} }),
    )
    const [, second] = await t.send([ping('ada', 1), ping('ada', 2)])
    await t.advance('1s')
    await soon(t)
    expect(newsOf(t)).toMatchObject([{ reason: 'The second is bad.', events: [{ id: second?.id }], eventCount: 1 }])
    expect(newsOf(t)[0]?.['deadLetter']).toBe((await t.app.admin.deadLetters.list()).items[0]?.id)
  })

  test('a run that crashes once too often is announced, once', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app
        .flow('hangs', { on: 'ping', key: userOf, run: ({ key }) => gate.wait(key) })
        .flow('news', { on: 'sluice/run.dead', run: () => {} }),
    )
    await sendNow(t, ping('poison'))
    for (let lapse = 1; lapse <= 4; lapse++) {
      await t.crash()
      await t.restart()
      await t.advance('31s')
    }
    expect(newsOf(t)).toMatchObject([{ key: 'poison', reason: 'crashed', error: null, crashes: 4 }])
    await t.crash()
    await t.restart()
    await t.advance('1m')
    expect(newsOf(t)).toHaveLength(1)
  })

  test('the event survives a crash of the process between the death and its routing', async () => {
    const t = await play(store, withNews)
    const died = Promise.withResolvers<void>()
    t.app.on('run.dead', () => {
      void t.crash()
      died.resolve()
    })
    await sendNow(t, ping('ada'))
    await died.promise
    await t.restart()
    await t.advance('2s')
    expect(newsOf(t)).toMatchObject([{ key: 'ada' }])
    expect(await storedNews(t.app)).toEqual(['run.dead'])
  })

  test('a dead letter of a flow that took it raises one alert, and no event; the alert clears once it is resolved', async () => {
    const t = await play(store, (app) =>
      withFailing(app).flow('news', { on: 'sluice/**', key: () => 'all', retry: [], run: fails }),
    )
    await sendNow(t, [ping('ada'), ping('bob')])
    await t.advance('1s')
    expect(await storedNews(t.app)).toEqual(['run.dead', 'run.dead'])
    const named = { alert: 'dead-letters:news' }
    expect(emittedEvents(t, 'alert.raised')).toMatchObject([named])
    const ours = (await t.app.admin.deadLetters.list({ flow: 'news' })).items
    expect(emittedEvents(t, 'alert.raised')[0]?.text).toContain(ours.at(-1)?.id)
    expect(emittedEvents(t, 'alert.cleared')).toEqual([])
    await t.app.admin.deadLetters.drop({ flow: 'news' })
    await t.advance('3h')
    expect(emittedEvents(t, 'alert.cleared')).toMatchObject([named])
    expect(emittedEvents(t, 'alert.raised')).toHaveLength(1)
  })

  test('a flow of another process gets it, also if it starts later', async () => {
    const shared = await Shared.open(store)
    const works = await shared.process('works', withFailing)
    await works.publish(ping('before'))
    await shared.advance(1_000)
    const heard: unknown[] = []
    await shared.process('hears', (app) =>
      app.flow('news', { on: 'sluice/run.dead', run: ({ events }) => void heard.push(events[0]?.subject) }),
    )
    await works.publish(ping('after'))
    await shared.advance(2_000)
    expect(heard).toEqual(['after'])
  })

  test('nobody can publish it: the source sluice is reserved, for publish and for run.publish', async () => {
    const forged = { source: 'sluice', type: 'run.dead', data: {} }
    const t = await play(store, (app) =>
      app.flow('forges', { on: 'ping', retry: [], run: (run) => run.publish(forged) }),
    )
    const refused = "source must not be 'sluice' or begin with 'sluice.'"
    await expect(t.app.publish(forged)).rejects.toThrow(refused)
    await sendNow(t, ping('ada'))
    expect(t.runs[0]?.error).toContain(refused)
    expect(await storedNews(t.app)).toEqual([])
  })
})
