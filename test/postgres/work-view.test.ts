// The view `work` on a server, read beside the working process: each row matches what the app says.
import { describe, expect, inject, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { everyWord, fails, rejectedRequest, typingAndParts } from '../work-flows.ts'
import { atWork, type AtWork } from './running-app.ts'

const START = Date.UTC(2026, 0, 10, 12)

describe.each(inject('postgresServers'))('the view work on $name', ({ url }) => {
  const scene = (declare: (app: Sluice) => unknown): Promise<AtWork> => atWork({ url, now: START, declare })

  it('has a row for each event and flow, with its state', async () => {
    const running = Promise.withResolvers<void>()
    const t = await scene((app) => everyWord(app, running.promise))
    await t.send({ type: 'last', id: 'first-of-two' })
    for (const type of ['done', 'waits', 'failing', 'dead', 'dropped', 'last', 'keyless', 'runs', 'nobody']) {
      await t.send({ type, id: `an-${type}`, source: 'shop', tenant: 'acme' })
    }
    expect((await t.app.fetch(rejectedRequest())).status).toBe(202)
    await t.advance('2s')
    await t.send({ type: 'failing', id: 'behind' })
    const rows = await t.ask('select event, flow, status, attempts, last_error from work order by event, flow')
    expect(rows.map((row) => Object.values(row))).toEqual([
      [expect.any(String), 'checked', 'unrouted', 0, expect.stringContaining('web/checked: data.user: ')],
      ['an-dead', 'dead', 'dead_letter', 1, 'Error: no answer'],
      ['an-done', 'also', 'completed', 1, null],
      ['an-done', 'done', 'completed', 1, null],
      ['an-dropped', 'dropped', 'dropped', 0, 'not for us'],
      ['an-failing', 'failing', 'failed', 1, 'Error: no answer'],
      ['an-keyless', 'keyless', 'unrouted', 0, expect.stringContaining('JSON')],
      ['an-last', 'last', 'completed', 1, null],
      ['an-runs', 'runs', 'running', 1, null],
      ['an-waits', 'waits', 'pending', 0, null],
      ['behind', 'failing', 'pending', 0, null],
      ['first-of-two', 'last', 'superseded', 0, null],
    ])
    // What the app itself says.
    const dead = await t.app.admin.deadLetters.list({ flow: 'dead' })
    expect(dead.items.map(({ events, reason }) => [events, reason])).toEqual([[['an-dead'], 'Error: no answer']])
    const states = (await t.app.admin.lanes.search()).items.map(({ flow, state, waiting }) => [flow, state, waiting])
    expect(states.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))).toEqual([
      ['failing', 'retrying', 1],
      ['runs', 'running', 0],
      ['waits', 'waiting', 1],
    ])
    running.resolve()
    await t.settled()
    expect(await t.ask(`select status from work where event = 'an-runs'`)).toEqual([{ status: 'completed' }])
  })

  it('names the event, and the times of its arrival, its end and its next attempt, as server times', async () => {
    const t = await scene((app) =>
      app
        .flow('slow', { on: 'slow', key: () => 'a, "key"', window: { quiet: '90s' }, run: () => {} })
        .flow('failing', { on: 'failing', key: () => 'k', retry: { delays: ['5h'], jitter: 0 }, run: fails }),
    )
    await t.send({ type: 'slow', id: 'one', source: 'shop', tenant: 'acme', subject: 'ada' })
    await t.advance('90s')
    await t.send({ type: 'failing', id: 'two' })
    expect(await t.ask(`select * from work where event = 'one'`)).toEqual([
      {
        event: 'one',
        source: 'shop',
        event_type: 'slow',
        flow: 'slow',
        key: 'a, "key"',
        tenant: 'acme',
        status: 'completed',
        received_at: new Date('2026-01-10T12:00:00.000Z'),
        processed_at: new Date('2026-01-10T12:01:30.000Z'),
        latency_seconds: 90,
        attempts: 1,
        last_error: null,
        next_retry_at: null,
        lane: expect.any(String),
        subject: 'ada',
        payload_row: expect.anything(),
      },
    ])
    expect(await t.ask(`select processed_at, next_retry_at from work where event = 'two'`)).toEqual([
      { processed_at: null, next_retry_at: new Date('2026-01-10T17:01:30.000Z') },
    ])
  })

  it('can be read with any keys and errors', async () => {
    // U+0000, its escape character, an unpaired surrogate, and a text that only looks like an escape.
    const odd = 'a\0b\u0001c\u001b[1m \\u0000 \ud83d'
    const t = await scene((app) =>
      app
        .flow('failing', {
          on: 'x',
          key: () => 'null\0in\0it, ключ',
          retry: ['5h'],
          run: () => {
            throw new Error(odd)
          },
        })
        .flow('dead', {
          on: 'x',
          retry: [],
          run: () => {
            throw new Error(odd)
          },
        })
        .flow('mended', {
          on: 'x',
          retry: ['1s'],
          run: ({ attempt }) => {
            if (attempt === 1) throw new Error(odd)
          },
        }),
    )
    await t.send({ type: 'x', id: 'one' })
    await t.advance('5s')
    const shown = 'Error: a?b\u0001c\u001b[1m \\u0000 ?'
    const rows = await t.ask('select flow, status, key, last_error from work order by flow')
    expect(rows.map((row) => Object.values(row))).toEqual([
      ['dead', 'dead_letter', 'one', shown.replace(/\?$/, '\ufffd')],
      ['failing', 'failed', 'null?in?it, ключ', shown],
      ['mended', 'completed', 'one', shown],
    ])
  })

  it('follows a dead letter that is retried, and one that is dropped', async () => {
    let broken = true
    const t = await scene((app) =>
      app.flow('dead', { on: 'x', key: (event) => event.id, retry: [], run: () => (broken ? fails() : undefined) }),
    )
    await t.send([
      { type: 'x', id: 'one' },
      { type: 'x', id: 'two' },
    ])
    const statuses = async (): Promise<unknown> =>
      (await t.ask('select status from work order by event')).map((row) => row['status'])
    expect(await statuses()).toEqual(['dead_letter', 'dead_letter'])
    broken = false
    const { items } = await t.app.admin.deadLetters.list({ flow: 'dead' })
    const [one, two] = items.toSorted((a, b) => (a.events[0] ?? '').localeCompare(b.events[0] ?? ''))
    await t.app.admin.flows.pause('dead', { reason: 'test', by: 'test' })
    await t.app.admin.deadLetters.retry(one?.id ?? '')
    await t.app.admin.deadLetters.drop(two?.id ?? '')
    expect(await statuses()).toEqual(['pending', 'dropped'])
    await t.app.admin.flows.resume('dead', 'test')
    await t.settled()
    expect(await statuses()).toEqual(['completed', 'dropped'])
    // A retry by hand starts a new run.
    expect(await t.ask(`select attempts, last_error from work where event = 'one'`)).toEqual([
      { attempts: 1, last_error: null },
    ])
  })

  it('separates the events of a run from those behind it, however many wait', async () => {
    const t = await scene((app) =>
      app.flow('big', { on: 'x', key: () => 'k', window: { quiet: '1s', maxEvents: 70 }, retry: ['5h'], run: fails }),
    )
    await t.send(Array.from({ length: 150 }, (_, n) => ({ type: 'x', id: `e${String(n).padStart(3, '0')}` })))
    await t.advance('1s')
    expect(
      await t.ask('select status, count(*)::int as n, max(event) as last from work group by status order by 1'),
    ).toEqual([
      { status: 'failed', n: 70, last: 'e069' },
      { status: 'pending', n: 80, last: 'e149' },
    ])
  })

  it('shows events of a cancelled run as waiting again, and the rest of a partial run as continuing', async () => {
    const t = await scene(typingAndParts)
    const rows = async (type: string): Promise<unknown> =>
      (await t.ask(`select event, status, attempts from work where event_type = '${type}' order by event`)).map(
        Object.values,
      )
    await t.send({ type: 'typed', id: 'one' })
    await t.advance('1s')
    expect(await rows('typed')).toEqual([['one', 'running', 1]])
    await t.send({ type: 'typed', id: 'two' })
    expect(await rows('typed')).toEqual([
      ['one', 'pending', 0],
      ['two', 'pending', 0],
    ])
    await t.advance('1s')
    expect(await rows('typed')).toEqual([
      ['one', 'completed', 1],
      ['two', 'completed', 1],
    ])
    await t.send([
      { type: 'part', id: 'good' },
      { type: 'part', id: 'late' },
    ])
    await t.advance('1s')
    expect(await rows('part')).toEqual([
      ['good', 'completed', 1],
      ['late', 'failed', 1],
    ])
    // The accepted event did not fail, although its neighbour did.
    const errors = await t.ask(`select last_error from work where event_type = 'part' order by event`)
    expect(errors.map((row) => row['last_error'])).toEqual([null, expect.stringContaining('not now')])
    await t.advance('1h')
    expect(await rows('part')).toEqual([
      ['good', 'completed', 1],
      ['late', 'completed', 2],
    ])
  })

  it('shows of a purged event only that it existed', async () => {
    const t = await scene((app) =>
      app
        .flow('waits', { on: 'x', key: (event) => event.subject, window: { quiet: '1h' }, run: () => {} })
        .flow('other', { on: 'x', key: () => 'k', window: { quiet: '1h' }, run: () => {} }),
    )
    await t.send([
      { type: 'x', id: 'one', subject: 'a' },
      { type: 'x', id: 'two', subject: 'b' },
    ])
    const rows = async (): Promise<unknown> =>
      (await t.ask('select event, flow, status from work order by event, flow')).map(Object.values)
    await t.app.admin.purge({ event: 'one' })
    // Without other waiting events, the lane is deleted, and its name with it.
    expect(await rows()).toEqual([
      ['one', 'other', 'purged'],
      ['one', null, 'purged'],
      ['two', 'other', 'pending'],
      ['two', 'waits', 'pending'],
    ])
    // One flow has finished the event; another still has it.
    await t.app.admin.purge({ flow: 'other', key: 'k' })
    await t.send({ type: 'x', id: 'three', subject: 'c' })
    expect(await t.ask(`select flow, status from work where event = 'two' order by flow`)).toEqual([
      { flow: 'other', status: 'purged' },
      { flow: 'waits', status: 'pending' },
    ])
  })

  it('shows an event that died twice, the second time in a replay, once', async () => {
    const t = await scene((app) => app.flow('dead', { on: 'x', key: () => 'k', retry: [], run: fails }))
    await t.send({ type: 'x', id: 'one' })
    await t.app.admin.replays.start({ type: 'x' })
    await t.advance('1m')
    expect((await t.app.admin.deadLetters.list({ flow: 'dead' })).items).toHaveLength(2)
    expect(await t.ask(`select event, status from work where flow = 'dead'`)).toEqual([
      { event: 'one', status: 'dead_letter' },
    ])
  })

  it('does not change with a replay, unless the event enters a lane for the first time', async () => {
    const running = Promise.withResolvers<void>()
    let isNew = false
    const t = await scene((app) =>
      app
        .flow('first', { on: 'x', key: () => 'k', run: () => {} })
        .flow('later', { on: () => isNew, key: () => 'k', run: () => running.promise }),
    )
    const rows = async (): Promise<unknown> =>
      (
        await t.ask(`select event, flow, status, attempts, processed_at from work where event_type = 'x' order by 1, 2`)
      ).map(Object.values)
    await t.send([
      { type: 'x', id: 'one' },
      { type: 'x', id: 'two' },
    ])
    const before = await rows()
    expect(before).toHaveLength(2)
    await t.advance('1h')
    await t.app.admin.replays.start({ type: 'x' }, { into: 'first' })
    await t.advance('1m')
    expect(await rows()).toEqual(before)
    // There is a second run of them nevertheless.
    expect((await t.app.admin.runs.list({ flow: 'first' })).items).toHaveLength(2)
    isNew = true
    await t.app.admin.flows.pause('later', { reason: 'test', by: 'test' })
    await t.app.admin.replays.start({ type: 'x' }, { into: 'later' })
    await t.advance('1m')
    const later = async (): Promise<unknown> =>
      (await t.ask(`select event, status, attempts from work where flow = 'later' order by 1`)).map(Object.values)
    expect(await later()).toEqual([
      ['one', 'pending', 0],
      ['two', 'pending', 0],
    ])
    await t.app.admin.flows.resume('later')
    await t.settled()
    expect(await later()).toEqual([
      ['one', 'running', 1],
      ['two', 'running', 1],
    ])
    running.resolve()
    await t.settled()
    expect(await later()).toEqual([
      ['one', 'completed', 1],
      ['two', 'completed', 1],
    ])
  })
})
