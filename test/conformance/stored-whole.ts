// L2: one commit stores the event and, for each flow, its placements or an unrouted record. No stored event lacks both.
import assert from 'node:assert/strict'
import type { LeasedUnroutedEvent, UnroutedReason, PlaceItem, PlaceReply } from '../../src/store/contract/index.ts'
import { getKeys, assertSingle, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { createUnrouted, createPlacement, type PlacementOverrides } from './builders.ts'

const ALL: readonly UnroutedReason[] = [
  'outbox',
  'slot',
  'unknown-flow',
  'key-failed',
  'schema-failed',
  'fan-out',
  'routes-old',
]
/** Processes claim these only after a start. */
const FAULTS = ['key-failed', 'schema-failed'] as const

interface UnroutedOverrides {
  readonly flows?: readonly string[]
  readonly reasons?: readonly UnroutedReason[]
  readonly n?: number
}

async function claimUnrouted(
  t: ConformanceStage,
  words: UnroutedOverrides = {},
): Promise<readonly LeasedUnroutedEvent[]> {
  const { flows = ['flow'], reasons = ALL, n = 100 } = words
  return (await t.store.claimUnrouted({ n, lease: 1_000, reasons, flows })).unrouted
}

async function placeItem(t: ConformanceStage, item: PlaceItem): Promise<PlaceReply['results'][number]> {
  return assertSingle((await t.store.place({ routes: t.routes, items: [item] })).results)
}

function createPlaceItem(leased: LeasedUnroutedEvent, ...places: readonly PlacementOverrides[]): PlaceItem {
  return { kind: 'unrouted', id: leased.id, token: leased.token, placements: places.map(createPlacement), unrouted: [] }
}

export const storedWhole: Suite = (rule) => {
  rule('L2 an event is in the lanes of all its flows from the moment it is stored', async (t) => {
    await t.append('a', {
      placements: [
        { flow: 'flow', key: 'x' },
        { flow: 'mail', key: 'y' },
      ],
    })
    const here = await t.claimOne({ flow: 'flow' })
    const there = await t.claimOne({ flow: 'mail' })
    assert.deepEqual([here.key, t.names(here)], ['x', ['a']])
    assert.deepEqual([there.key, t.names(there)], ['y', ['a']])
  })

  rule('L2 one commit stores a placement for one flow and an unrouted record for another', async (t) => {
    await t.append('a', {
      key: 'k',
      unrouted: [{ flow: 'mail', reason: 'unknown-flow', error: 'not served here' }],
      subject: 's',
    })
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
    const leased = assertSingle(await claimUnrouted(t, { flows: ['mail'] }))
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

  rule('L2 claimUnrouted filters by flow and reason, and returns events without a flow to every process', async (t) => {
    await t.append('routed-by-nobody', { unrouted: [createUnrouted('outbox')] })
    await t.append('of-mail', { unrouted: [createUnrouted('slot', 'mail')] })
    await t.append('broken', { unrouted: [createUnrouted('key-failed', 'flow')] })
    const names = (unrouted: readonly LeasedUnroutedEvent[]): readonly string[] =>
      t.names(unrouted.map((leased) => leased.event.id))
    assert.deepEqual(names(await claimUnrouted(t, { flows: [], reasons: ['slot'] })), [])
    assert.deepEqual(names(await claimUnrouted(t, { flows: [] })), ['routed-by-nobody'])
    assert.deepEqual(names(await claimUnrouted(t, { flows: ['flow'], reasons: ['outbox', 'slot'] })), [])
    assert.deepEqual(names(await claimUnrouted(t, { flows: ['flow'], reasons: ['key-failed'] })), ['broken'])
    assert.deepEqual(names(await claimUnrouted(t, { flows: ['mail', 'flow'] })), ['of-mail'])
  })

  rule('L2 claimUnrouted returns the oldest due first, up to the requested number', async (t) => {
    for (const name of ['a', 'b', 'c']) {
      await t.append(name, { unrouted: [createUnrouted('outbox')] })
      t.clock.advance(10)
    }
    assert.deepEqual(t.names((await claimUnrouted(t, { n: 2 })).map((leased) => leased.event.id)), ['a', 'b'])
    assert.deepEqual(t.names((await claimUnrouted(t, { n: 2 })).map((leased) => leased.event.id)), ['c'])
  })

  rule('L2 oldest due is by when they are due, not by when they were written', async (t) => {
    for (const name of ['a', 'b']) await t.append(name, { unrouted: [createUnrouted('outbox')] })
    for (const [n, leased] of (await claimUnrouted(t)).entries()) {
      const still = [{ ...createUnrouted('outbox'), after: n === 0 ? 900 : 300 }]
      await placeItem(t, { kind: 'unrouted', id: leased.id, token: leased.token, placements: [], unrouted: still })
    }
    t.clock.advance(600)
    await t.append('c', { unrouted: [createUnrouted('outbox')] })
    t.clock.advance(600)
    assert.deepEqual(t.names((await claimUnrouted(t)).map((leased) => leased.event.id)), ['b', 'c', 'a'])
  })

  rule('L2 a leased unrouted event is not leased again until its lease ends, with a new token', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const first = assertSingle(await claimUnrouted(t))
    t.clock.advance(999)
    assert.deepEqual(await claimUnrouted(t), [])
    t.clock.advance(1)
    const second = assertSingle(await claimUnrouted(t))
    assert.equal(second.id, first.id)
    assert.notEqual(second.token, first.token)
    assert.ok(second.tries > first.tries)
  })

  rule('L2 placing removes the unrouted record and stores placement and window in one commit', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    t.clock.advance(500)
    assert.equal(
      await placeItem(t, createPlaceItem(assertSingle(await claimUnrouted(t)), { key: 'k', quiet: 100 })),
      'placed',
    )
    assert.deepEqual(await t.findAll('unrouted'), [])
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a'])
    t.clock.advance(10_000)
    assert.deepEqual(await claimUnrouted(t), [])
  })

  rule('L2 placing with the token of an earlier lease returns lost and places nothing', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const stalled = assertSingle(await claimUnrouted(t))
    t.clock.advance(1_000)
    const current = assertSingle(await claimUnrouted(t))
    assert.equal(await placeItem(t, createPlaceItem(stalled, { key: 'k' })), 'lost')
    await t.assertNothingReady()
    assert.equal(await placeItem(t, createPlaceItem(current, { key: 'k' })), 'placed')
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L2 placing is idempotent: the same call again puts the event into no lane twice', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const item = createPlaceItem(assertSingle(await claimUnrouted(t)), { key: 'k' }, { key: 'l' })
    assert.equal(await placeItem(t, item), 'placed')
    assert.equal(await placeItem(t, item), 'lost')
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['k', ['a']],
        ['l', ['a']],
      ],
    )
    for (const run of runs) await t.settleOk(run)
    await placeItem(t, item)
    await t.assertNothingReady()
  })

  rule(
    'L2 placing leaves out lanes in which the event was placed before, even if its work there is done',
    async (t) => {
      await t.append('a', { key: 'k', unrouted: [createUnrouted('fan-out', 'flow')] })
      await t.settleOk(await t.claimOne())
      assert.equal(
        await placeItem(t, createPlaceItem(assertSingle(await claimUnrouted(t)), { key: 'k' }, { key: 'l' })),
        'placed',
      )
      assert.deepEqual(getKeys(await t.claim()), ['l'])
    },
  )

  rule('L2 an event that cannot be placed stays unrouted and is due after its delay', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const leased = assertSingle(await claimUnrouted(t))
    const still = [{ flow: 'mail', reason: 'unknown-flow', error: 'later', after: 5_000 }] as const
    assert.equal(
      await placeItem(t, {
        kind: 'unrouted',
        id: leased.id,
        token: leased.token,
        placements: [createPlacement()],
        unrouted: still,
      }),
      'placed',
    )
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
    t.clock.advance(4_999)
    assert.deepEqual(await claimUnrouted(t, { flows: ['mail'] }), [])
    t.clock.advance(1)
    const back = assertSingle(await claimUnrouted(t, { flows: ['mail'] }))
    assert.deepEqual(
      [back.flow, back.reason, back.error, t.names([back.event.id])],
      ['mail', 'unknown-flow', 'later', ['a']],
    )
  })

  rule('L2 unrouted events are listed by age, and counted by reason', async (t) => {
    const since = t.clock.now()
    await t.append('a', { unrouted: [createUnrouted('key-failed', 'flow')] })
    t.clock.advance(1_000)
    await t.append('b', { unrouted: [createUnrouted('key-failed', 'flow'), createUnrouted('outbox')] })
    const unrouted = await t.findAll('unrouted')
    assert.deepEqual(sorted(t.names(unrouted.map((each) => each.event))), ['a', 'b', 'b'])
    assert.equal(unrouted.find((each) => each.event === t.id('a'))?.since, since)
    const counted = (await t.store.stats()).unrouted.map(({ reason, count, oldest }) => [reason, count, oldest - since])
    assert.deepEqual(sorted(counted), [
      ['key-failed', 2, 0],
      ['outbox', 1, 1_000],
    ])
  })

  for (const reason of FAULTS) {
    rule(`L2a a ${reason} event is claimed by its reason, listed and counted with it`, async (t) => {
      await t.append('broken', { unrouted: [{ flow: 'flow', reason, error: 'data.user: expected a text' }] })
      assert.deepEqual(await claimUnrouted(t, { reasons: ALL.filter((other) => other !== reason) }), [])
      const [listed] = await t.findAll('unrouted')
      assert.deepEqual([listed?.reason, listed?.error], [reason, 'data.user: expected a text'])
      assert.deepEqual(
        (await t.store.stats()).unrouted.map((one) => [one.reason, one.count]),
        [[reason, 1]],
      )
      const leased = assertSingle(await claimUnrouted(t, { reasons: [reason] }))
      assert.deepEqual([leased.reason, leased.error], [reason, 'data.user: expected a text'])
    })

    rule(`L2a a ${reason} event that is retried by hand is placed by any process that serves its flow`, async (t) => {
      await t.append('broken', { unrouted: [createUnrouted(reason, 'flow')] })
      const byThemselves = { reasons: ALL.filter((other) => other !== reason) }
      assert.deepEqual(await claimUnrouted(t, byThemselves), [])
      const { id } = assertSingle(await t.findAll('unrouted'))
      await t.store.steer({ what: 'unrouted', ids: [id], act: 'retry' })
      const asked = assertSingle(await claimUnrouted(t, byThemselves))
      assert.deepEqual([asked.id, asked.flow, asked.error], [id, 'flow', ''])
      const still = [{ flow: 'flow', reason, error: 'again', after: 0 }] as const
      await placeItem(t, { kind: 'unrouted', id, token: asked.token, placements: [], unrouted: still })
      assert.deepEqual(await claimUnrouted(t, byThemselves), [])
    })
  }

  rule('L2 an operator can make an unrouted event due, or drop it', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('key-failed', 'flow')] })
    const leased = assertSingle(await claimUnrouted(t))
    const still = [{ flow: 'flow', reason: 'key-failed', error: 'snoozed', after: 60_000 }] as const
    await placeItem(t, { kind: 'unrouted', id: leased.id, token: leased.token, placements: [], unrouted: still })
    assert.deepEqual(await claimUnrouted(t), [])
    const { id } = assertSingle(await t.findAll('unrouted'))
    assert.deepEqual((await t.store.steer({ what: 'unrouted', ids: [id, id + 1_000], act: 'retry' })).results, [
      'ok',
      'missing',
    ])
    assert.equal(assertSingle(await claimUnrouted(t)).id, id)
    assert.deepEqual((await t.store.steer({ what: 'unrouted', ids: [id], act: 'drop' })).results, ['ok'])
    t.clock.advance(60_000)
    assert.deepEqual(await claimUnrouted(t), [])
    assert.deepEqual(await t.findAll('unrouted'), [])
  })
}
