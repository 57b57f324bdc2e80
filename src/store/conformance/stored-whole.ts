// L2: one commit holds the event and, for each flow, its places or a mark; nothing is stored that nothing will wake for.
import assert from 'node:assert/strict'
import type { LeasedMark, MarkReason, PlaceItem, PlaceReply } from '../contract/index.ts'
import { keys, only, sorted, type Stage, type Suite } from './stage.ts'
import { mark, place, type PlaceWords } from './vocabulary.ts'

const ALL: readonly MarkReason[] = ['outbox', 'slot', 'unknown-flow', 'key-failed', 'fan-out', 'routes-old']

interface Asked {
  readonly flows?: readonly string[]
  readonly reasons?: readonly MarkReason[]
  readonly n?: number
}

async function unrouted(t: Stage, words: Asked = {}): Promise<readonly LeasedMark[]> {
  const { flows = ['flow'], reasons = ALL, n = 100 } = words
  return (await t.store.unrouted({ n, lease: 1_000, reasons, flows })).marks
}

async function put(t: Stage, item: PlaceItem): Promise<PlaceReply['results'][number]> {
  return only((await t.store.place({ routes: t.routes, items: [item] })).results)
}

function placed(leased: LeasedMark, ...places: readonly PlaceWords[]): PlaceItem {
  return { kind: 'mark', id: leased.id, token: leased.token, places: places.map(place), marks: [] }
}

export const storedWhole: Suite = (rule) => {
  rule('L2 an event is in the lanes of all its flows from the moment it is stored', async (t) => {
    await t.append('a', {
      places: [
        { flow: 'flow', key: 'x' },
        { flow: 'mail', key: 'y' },
      ],
    })
    const here = await t.next({ flow: 'flow' })
    const there = await t.next({ flow: 'mail' })
    assert.deepEqual([here.key, t.names(here)], ['x', ['a']])
    assert.deepEqual([there.key, t.names(there)], ['y', ['a']])
  })

  rule('L2 an event has a place for one flow and a mark for another in one commit', async (t) => {
    await t.append('a', {
      key: 'k',
      marks: [{ flow: 'mail', reason: 'unknown-flow', error: 'not served here' }],
      subject: 's',
    })
    assert.deepEqual(t.names(await t.next()), ['a'])
    const leased = only(await unrouted(t, { flows: ['mail'] }))
    assert.deepEqual(
      [
        leased.flow,
        leased.reason,
        leased.error,
        t.names([leased.event.id]),
        leased.event.subject,
        leased.event.arrived,
      ],
      ['mail', 'unknown-flow', 'not served here', ['a'], 's', t.clock.now()],
    )
    assert.equal(Buffer.from(leased.event.body).toString(), 'a')
  })

  rule(
    'L2 marks are given for the flows and reasons that are asked for, and marks of no flow to everybody',
    async (t) => {
      await t.append('routed-by-nobody', { marks: [mark('outbox')] })
      await t.append('of-mail', { marks: [mark('slot', 'mail')] })
      await t.append('broken', { marks: [mark('key-failed', 'flow')] })
      const names = (marks: readonly LeasedMark[]): readonly string[] => t.names(marks.map((leased) => leased.event.id))
      assert.deepEqual(names(await unrouted(t, { flows: [], reasons: ['slot'] })), [])
      assert.deepEqual(names(await unrouted(t, { flows: [] })), ['routed-by-nobody'])
      assert.deepEqual(names(await unrouted(t, { flows: ['flow'], reasons: ['outbox', 'slot'] })), [])
      assert.deepEqual(names(await unrouted(t, { flows: ['flow'], reasons: ['key-failed'] })), ['broken'])
      assert.deepEqual(names(await unrouted(t, { flows: ['mail', 'flow'] })), ['of-mail'])
    },
  )

  rule('L2 marks come oldest due first, as many as asked for', async (t) => {
    for (const name of ['a', 'b', 'c']) {
      await t.append(name, { marks: [mark('outbox')] })
      t.clock.advance(10)
    }
    assert.deepEqual(t.names((await unrouted(t, { n: 2 })).map((leased) => leased.event.id)), ['a', 'b'])
    assert.deepEqual(t.names((await unrouted(t, { n: 2 })).map((leased) => leased.event.id)), ['c'])
  })

  rule('L2 oldest due is by when they are due, not by when they were written', async (t) => {
    for (const name of ['a', 'b']) await t.append(name, { marks: [mark('outbox')] })
    for (const [n, leased] of (await unrouted(t)).entries()) {
      const still = [{ ...mark('outbox'), after: n === 0 ? 900 : 300 }]
      await put(t, { kind: 'mark', id: leased.id, token: leased.token, places: [], marks: still })
    }
    t.clock.advance(600)
    await t.append('c', { marks: [mark('outbox')] })
    t.clock.advance(600)
    assert.deepEqual(t.names((await unrouted(t)).map((leased) => leased.event.id)), ['b', 'c', 'a'])
  })

  rule('L2 a leased mark is given to nobody else until its lease ends, then with a new token', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const first = only(await unrouted(t))
    t.clock.advance(999)
    assert.deepEqual(await unrouted(t), [])
    t.clock.advance(1)
    const second = only(await unrouted(t))
    assert.equal(second.id, first.id)
    assert.notEqual(second.token, first.token)
    assert.ok(second.tries > first.tries)
  })

  rule('L2 placing ends the mark and gives the event its place and window in one commit', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    t.clock.advance(500)
    assert.equal(await put(t, placed(only(await unrouted(t)), { key: 'k', quiet: 100 })), 'placed')
    assert.deepEqual(await t.all('marks'), [])
    assert.deepEqual(t.names(await t.dueIn(100)), ['a'])
    t.clock.advance(10_000)
    assert.deepEqual(await unrouted(t), [])
  })

  rule('L2 placing with the token of an earlier lease answers lost and places nothing', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const stalled = only(await unrouted(t))
    t.clock.advance(1_000)
    const current = only(await unrouted(t))
    assert.equal(await put(t, placed(stalled, { key: 'k' })), 'lost')
    await t.nothing()
    assert.equal(await put(t, placed(current, { key: 'k' })), 'placed')
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L2 placing is idempotent: the same call again puts the event into no lane twice', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const item = placed(only(await unrouted(t)), { key: 'k' }, { key: 'l' })
    assert.equal(await put(t, item), 'placed')
    assert.equal(await put(t, item), 'lost')
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['k', ['a']],
        ['l', ['a']],
      ],
    )
    for (const run of runs) await t.end(run)
    await put(t, item)
    await t.nothing()
  })

  rule(
    'L2 placing skips the lanes the event has been placed in before, even when its work there is done',
    async (t) => {
      await t.append('a', { key: 'k', marks: [mark('fan-out', 'flow')] })
      await t.end(await t.next())
      assert.equal(await put(t, placed(only(await unrouted(t)), { key: 'k' }, { key: 'l' })), 'placed')
      assert.deepEqual(keys(await t.claim()), ['l'])
    },
  )

  rule('L2 what cannot be placed stays marked and is due again after its delay', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const leased = only(await unrouted(t))
    const still = [{ flow: 'mail', reason: 'unknown-flow', error: 'later', after: 5_000 }] as const
    assert.equal(
      await put(t, { kind: 'mark', id: leased.id, token: leased.token, places: [place()], marks: still }),
      'placed',
    )
    assert.deepEqual(t.names(await t.next()), ['a'])
    t.clock.advance(4_999)
    assert.deepEqual(await unrouted(t, { flows: ['mail'] }), [])
    t.clock.advance(1)
    const back = only(await unrouted(t, { flows: ['mail'] }))
    assert.deepEqual(
      [back.flow, back.reason, back.error, t.names([back.event.id])],
      ['mail', 'unknown-flow', 'later', ['a']],
    )
  })

  rule('L2 marks are shown by age, and counted by reason', async (t) => {
    const since = t.clock.now()
    await t.append('a', { marks: [mark('key-failed', 'flow')] })
    t.clock.advance(1_000)
    await t.append('b', { marks: [mark('key-failed', 'flow'), mark('outbox')] })
    const marks = await t.all('marks')
    assert.deepEqual(sorted(t.names(marks.map((each) => each.event))), ['a', 'b', 'b'])
    assert.equal(marks.find((each) => each.event === t.id('a'))?.since, since)
    const counted = (await t.store.stats()).marks.map(({ reason, count, oldest }) => [reason, count, oldest - since])
    assert.deepEqual(sorted(counted), [
      ['key-failed', 2, 0],
      ['outbox', 1, 1_000],
    ])
  })

  rule('L2 a mark can be made due by hand, or ended', async (t) => {
    await t.append('a', { marks: [mark('key-failed', 'flow')] })
    const leased = only(await unrouted(t))
    const still = [{ flow: 'flow', reason: 'key-failed', error: 'again', after: 60_000 }] as const
    await put(t, { kind: 'mark', id: leased.id, token: leased.token, places: [], marks: still })
    assert.deepEqual(await unrouted(t), [])
    const { id } = only(await t.all('marks'))
    assert.deepEqual((await t.store.steer({ what: 'marks', ids: [id, id + 1_000], act: 'retry' })).results, [
      'ok',
      'missing',
    ])
    assert.equal(only(await unrouted(t)).id, id)
    assert.deepEqual((await t.store.steer({ what: 'marks', ids: [id], act: 'drop' })).results, ['ok'])
    t.clock.advance(60_000)
    assert.deepEqual(await unrouted(t), [])
    assert.deepEqual(await t.all('marks'), [])
  })
}
