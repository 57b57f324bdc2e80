// L2b: events that a handler publishes are stored once with a successful ending, and otherwise not at all.
import { describe, expect, onTestFinished, test } from 'vitest'
import { snooze, drop, partial, Sluice, type Run, type Ending } from '../../src/index.ts'
import { testApp } from '../../src/testing/index.ts'
import { Gate, ping, play, sendNow, soon, START, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

type Handler = (run: Run) => Ending | void | Promise<Ending | void>

function chain(run: Handler): Declare {
  return (app) =>
    app
      .flow('first', { on: 'ping', key: userOf, retry: ['1s', '1s'], run })
      .flow('second', { on: 'pong', run: () => {} })
}

function isTarget({ flow }: { readonly flow: string }): boolean {
  return flow === 'second' || flow === 'third'
}

function pong(n: number): { readonly type: string; readonly data: unknown } {
  return { type: 'pong', data: { n } }
}

describe.each(STORES)('L2b a handler’s events on %s', (store) => {
  test('L2b run.publish commits together with the settlement', async () => {
    const gate = new Gate()
    const t = await play(
      store,
      chain(async (run) => {
        run.publish([pong(1), pong(2)])
        run.publish(pong(3))
        await gate.wait()
      }),
    )
    await sendNow(t, ping('u'))
    await t.advance('5s')
    expect(t.runs).toHaveLength(1)
    gate.open()
    await soon(t)
    expect(t.runs.slice(1).map((run) => run.events)).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
  })

  test('L2b lists have any length, counts have any name, and a call after the end of the run is rejected', async () => {
    let kept: Run | undefined
    const t = await play(
      store,
      chain((run) => {
        kept = run
        run.count('constructor')
        if (run.attempt > 1) return
        run.publish(Array.from({ length: 200_000 }, (_, n) => pong(n)))
        throw new Error('not yet')
      }),
    )
    await sendNow(t, ping('u'))
    await t.advance('2s')
    expect(t.runs.map(({ ending, error }) => [ending, error])).toEqual([
      ['retry', 'Error: not yet'],
      ['done', undefined],
    ])
    expect(emittedEvents(t, 'run.done')).toMatchObject([{ counts: { constructor: 1 } }])
    expect(() => kept?.publish(pong(1))).toThrow(/CONFLICT.*the run is over/)
  })

  test('L2b run.publish with `at` and `to` is stored with the settlement too, once', async () => {
    const t = await play(store, (app) =>
      app
        .flow('first', {
          on: 'ping',
          key: userOf,
          retry: ['1s', '1s'],
          run: (run) => {
            run.publish(pong(1), { at: START + 60_000 })
            run.publish(pong(2), { to: 'third' })
            run.publish(pong(3), { to: ['second', 'third'], at: new Date(START + 30_000) })
            if (run.attempt < 2) throw new Error('not yet')
          },
        })
        .flow('second', { on: 'pong', run: () => {} })
        .flow('third', { on: 'nothing', run: () => {} }),
    )
    await sendNow(t, ping('u'))
    const ran = (): unknown[] => t.runs.filter(isTarget).map(({ flow, events }) => [flow, events])
    expect(ran()).toEqual([])
    await t.advance('2s')
    expect(ran()).toEqual([['third', [{ n: 2 }]]])
    await t.advance('27s')
    expect(ran()).toHaveLength(1)
    await t.advance('1s')
    expect(ran().slice(1)).toEqual([
      ['second', [{ n: 3 }]],
      ['third', [{ n: 3 }]],
    ])
    await t.advance('30s')
    expect(ran().slice(3)).toEqual([['second', [{ n: 1 }]]])
  })

  test.each<[string, object]>([
    ['to must name existing flows', { to: 'nowhere' }],
    ['at must be', { at: Number.NaN }],
    ['tx is not an option', { tx: {} }],
  ])('L2b run.publish with a wrong target fails the attempt: %s', async (text, target) => {
    const t = await play(
      store,
      chain((run) => void (run.attempt === 1 && run.publish(pong(1), target))),
    )
    await sendNow(t, ping('u'))
    await t.advance('1s')
    expect(t.runs.map(({ ending }) => ending)).toEqual(['retry', 'done'])
    expect(t.runs[0]?.error).toContain(text)
  })

  test('L2b a failed attempt publishes nothing, a repeated one nothing twice', async () => {
    const t = await play(
      store,
      chain((run) => {
        run.publish([pong(1), pong(2)])
        if (run.attempt < 3) throw new Error('not yet')
      }),
    )
    await sendNow(t, ping('u'))
    await t.advance('500ms')
    expect(t.runs.filter((run) => run.flow === 'second')).toEqual([])
    await t.advance('10s')
    expect(t.runs.filter((run) => run.flow === 'second').map((run) => run.events)).toEqual([[{ n: 1 }], [{ n: 2 }]])
  })

  test('L2b a run that lost its lease publishes nothing; the next attempt publishes once', async () => {
    const gate = new Gate()
    const t = await play(
      store,
      chain(async (run) => {
        run.publish(pong(1))
        await gate.wait()
      }),
    )
    await sendNow(t, ping('u'))
    await t.crash()
    gate.open()
    await t.restart()
    await t.advance('31s')
    expect(t.runs.filter((run) => run.flow === 'second')).toEqual([])
    gate.open()
    await soon(t)
    expect(t.runs.filter((run) => run.flow === 'second')).toHaveLength(1)
  })

  test('L2b the numbering continues after a snooze, so that no event counts as a duplicate', async () => {
    const t = await play(
      store,
      chain((run) => {
        const turn = (run.state as number | undefined) ?? 1
        run.publish([pong(turn), pong(turn * 10)])
        return turn < 3 ? snooze({ after: '1s', state: turn + 1 }) : undefined
      }),
    )
    await sendNow(t, ping('u'))
    await t.advance('10s')
    const got = t.runs.filter((run) => run.flow === 'second').map((run) => (run.events[0] as { n: number }).n)
    expect(got).toEqual([1, 10, 2, 20, 3, 30])
    expect(t.emitted.filter((one) => one.name === 'event.conflict')).toEqual([])
  })

  test('L2b L10 duplicates and conflicts among published events are emitted as such', async () => {
    const t = await play(
      store,
      chain((run) => run.publish({ ...pong(run.key === 'other' ? 2 : 1), dedupeId: 'one' })),
    )
    for (const user of ['first', 'same', 'other']) await sendNow(t, ping(user))
    const stored = emittedEvents(t, 'event.received').filter(({ type }) => type === 'pong')
    expect(stored).toHaveLength(1)
    const of = stored[0]?.event
    expect(emittedEvents(t, 'event.duplicate')).toMatchObject([{ type: 'pong', of }])
    expect(emittedEvents(t, 'event.conflict')).toMatchObject([{ type: 'pong', of }])
  })

  test('L2b drop and partial publish too', async () => {
    const t = await play(
      store,
      chain((run) => {
        run.publish(pong(run.events.length))
        if (run.events.length === 1) return drop('enough')
        return partial({ failed: [{ id: run.events[0]?.id ?? '', reason: 'no' }] })
      }),
    )
    await sendNow(t, [ping('u', 1), ping('u', 2)])
    await t.advance('5s')
    expect(t.runs.filter((run) => run.flow === 'second').map((run) => run.events)).toEqual([[{ n: 2 }], [{ n: 1 }]])
  })

  test('L2b an invalid event fails the attempt, with the name of its field', async () => {
    const t = await play(
      store,
      chain((run) => run.publish({ type: '' })),
    )
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
    expect(t.runs[0]?.error).toContain('type')
  })

  test.each([
    ['id', { id: 'x'.repeat(129) }],
    ['source', { source: 'sluice.mine' }],
    ['attributes', { attributes: 'x' as unknown as Record<string, unknown> }],
  ])('L2b what could not be stored is a failure of the run, not lost: %s', async (field, wrong) => {
    const t = await play(
      store,
      chain((run) => run.publish([pong(1), { ...pong(2), ...wrong }])),
    )
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
    expect(t.runs[0]?.error).toContain(field)
    await t.advance('1m')
    expect(t.runs.filter((run) => run.flow === 'second')).toEqual([])
    expect((await t.app.admin.deadLetters.list()).items).toHaveLength(1)
  })

  test('L2b an id of the maximum length is published', async () => {
    const t = await play(
      store,
      chain((run) => run.publish({ ...pong(1), id: 'x'.repeat(128) })),
    )
    await sendNow(t, ping('u'))
    expect(t.runs.at(-1)).toMatchObject({ flow: 'second', key: 'x'.repeat(128), ending: 'done' })
  })

  test('L2b published events follow the rules of keys, windows and duplicates', async () => {
    const t = await play(store, (app) =>
      app
        .flow('first', { on: 'ping', run: (run) => run.publish({ ...pong(1), dedupeId: 'same' }) })
        .flow('second', { on: 'pong', key: () => 'all', window: { quiet: '10s' }, run: () => {} }),
    )
    await sendNow(t, [ping('a'), ping('b'), ping('c')])
    await t.advance('10s')
    expect(t.runs.at(-1)).toMatchObject({ flow: 'second', events: [{ n: 1 }] })
    expect(t.runs).toHaveLength(4)
  })
})

test('L18 what a run publishes while an endpoint is removed is placed at once after it', async () => {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: Buffer.alloc(32, 1).toString('base64') })
  app.delivery('versions', { on: 'version.*' })
  const seen: string[] = []
  app.flow('reader', { on: 'version.new', run: ({ events }) => void seen.push(...events.map(({ id }) => id)) })
  let removed = ''
  app.flow('publisher', {
    on: 'ping',
    run: async (run) => {
      run.publish({ type: 'version.new', id: 'published' })
      await app.endpoints.delete(removed)
    },
  })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  removed = (await app.endpoints.create({ url: 'https://example.com/hook' })).id
  await t.send({ type: 'ping' })
  await t.settled()
  expect(seen).toEqual(['published'])
})
