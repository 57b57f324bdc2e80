// L11: an event that a flow skips, or that no flow takes, shows so for as long as it is kept.
import assert from 'node:assert/strict'
import type { Skip } from '../../src/model/routing.ts'
import type { FeedEntry, LeasedUnroutedEvent, UnroutedFlow, PlaceItem } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { createUnrouted, createPlacement, type PlacementOverrides } from './builders.ts'

const NO_KEY: Skip = { flow: 'flow', reason: 'no-key' }

async function leaseOneUnrouted(t: ConformanceStage): Promise<LeasedUnroutedEvent> {
  const reasons = ['outbox', 'unknown-flow', 'key-failed', 'schema-failed', 'fan-out', 'routes-old'] as const
  return assertSingle((await t.store.claimUnrouted({ n: 10, lease: 1_000, reasons, flows: ['flow', 'mail'] })).unrouted)
}

/** Places an unrouted event with these placements and skips. */
async function appendRouted(
  t: ConformanceStage,
  places: readonly PlacementOverrides[],
  skips: readonly Skip[],
): Promise<void> {
  const { id, token } = await leaseOneUnrouted(t)
  const item: PlaceItem = { kind: 'unrouted', id, token, placements: places.map(createPlacement), unrouted: [], skips }
  assert.deepEqual((await t.store.place({ routes: t.routes, items: [item] })).results, ['placed'])
}

/** The routing that the record of an event, and the list of events, show. */
async function getRouting(
  t: ConformanceStage,
  name: string,
): Promise<{ skips: readonly Skip[]; unrouted: readonly UnroutedFlow[] }> {
  const record = await t.getEventRecord(name)
  const listed = (await t.findAll('events')).find(({ id }) => id === t.id(name))
  assert.ok(record && listed)
  const { skips, unrouted } = record
  assert.deepEqual([listed.skips, listed.unrouted], [skips, unrouted])
  return { skips, unrouted }
}

async function readFeedNotes(
  t: ConformanceStage,
  after: number,
): Promise<readonly (readonly [string, string, string | undefined])[]> {
  const { changes } = await t.store.readFeed({ after, n: 1_000 })
  return changes.map(({ kind, flow, note }: FeedEntry) => [kind, flow, note] as const)
}

export const skips: Suite = (rule) => {
  rule('L11 an event records which flows skipped it, beside those that took it', async (t) => {
    const others = ['mail', 'a "b"\\,c', 'ключ\0\u0001'].map((flow): Skip => ({ flow, reason: 'no-key' }))
    await t.append('a', { key: 'k', skips: others })
    assert.deepEqual(await getRouting(t, 'a'), { skips: others, unrouted: [] })
    await t.append('b', { key: 'k' })
    assert.deepEqual(await getRouting(t, 'b'), { skips: [], unrouted: [] })
  })

  rule('L11 an event that matches only flows without a key for it is stored, and nothing runs', async (t) => {
    await t.append('a', { skips: [NO_KEY] })
    assert.deepEqual((await t.getEventRecord('a'))?.lanes, [])
    await t.assertNothingReady()
    assert.deepEqual(await getRouting(t, 'a'), { skips: [NO_KEY], unrouted: [] })
  })

  rule('L2 an event shows the flows that still lack a placement for it', async (t) => {
    const failed: UnroutedFlow = { flow: 'mail', reason: 'key-failed', error: 'no "id"' }
    await t.append('a', { key: 'k', unrouted: [failed] })
    assert.deepEqual(await getRouting(t, 'a'), { skips: [], unrouted: [failed] })
    await appendRouted(t, [{ flow: 'mail', key: 'm' }], [])
    assert.deepEqual(await getRouting(t, 'a'), { skips: [], unrouted: [] })
  })

  rule('L11 a flow that finds no key when the event is routed late has skipped it', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('key-failed', 'flow')] })
    await appendRouted(t, [], [NO_KEY])
    assert.deepEqual(await getRouting(t, 'a'), { skips: [NO_KEY], unrouted: [] })
    await t.assertNothingReady()
  })

  rule('L16 a replay that finds a key ends the skip', async (t) => {
    const other: Skip = { flow: 'mail', reason: 'no-key' }
    await t.append('a', { skips: [other, NO_KEY] })
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement()] }] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['placed'])
    assert.deepEqual(await getRouting(t, 'a'), { skips: [other], unrouted: [] })
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L9 an unrouted event that an operator drops records which flow never got it', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('key-failed', 'flow')] })
    const { id } = assertSingle(await t.findAll('unrouted'))
    assert.deepEqual((await t.store.steer({ what: 'unrouted', ids: [id], act: 'drop' })).results, ['ok'])
    assert.deepEqual(await getRouting(t, 'a'), { skips: [{ flow: 'flow', reason: 'dropped' }], unrouted: [] })
  })

  rule('L11 live views show a skip, an unrouted event and an event that no flow takes', async (t) => {
    const { next: before } = await t.store.readFeed({ after: 0, n: 1_000 })
    await t.append('placed')
    await t.append('skipped', { skips: [NO_KEY] })
    await t.append('unwanted', { placements: [] })
    await t.append('marked', { unrouted: [createUnrouted('key-failed', 'mail')] })
    assert.deepEqual(await readFeedNotes(t, before), [
      ['event', '', undefined],
      ['event', '', 'skipped by flow: no key'],
      ['event', '', 'no flow wants this event'],
      ['event', '', 'not routed to mail yet: key-failed'],
    ])
  })

  rule('L11 live views show when an event that is routed late is skipped, or no flow takes it', async (t) => {
    await t.append('skipped', { unrouted: [createUnrouted('outbox')] })
    const { next: before } = await t.store.readFeed({ after: 0, n: 1_000 })
    await appendRouted(t, [], [NO_KEY])
    await t.append('unwanted', { unrouted: [createUnrouted('outbox')] })
    await appendRouted(t, [], [])
    await t.append('placed', { unrouted: [createUnrouted('outbox')] })
    await appendRouted(t, [{ key: 'k' }], [])
    const later = (await readFeedNotes(t, before)).filter(([, , note]) => note !== 'not routed yet')
    assert.deepEqual(later, [
      ['event', '', 'skipped by flow: no key'],
      ['event', '', 'no flow wants this event'],
    ])
  })
}
