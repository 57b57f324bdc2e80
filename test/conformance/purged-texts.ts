// L15: an error may quote its event, so a purge removes the texts of its runs as well.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import type { Attempt } from '../../src/model/lane.ts'
import type { PurgeCall } from '../../src/store/contract/index.ts'
import type { ConformanceStage, Suite } from './stage.ts'
import { DAY, done, retry, SECOND } from './builders.ts'

const QUOTE = 'the handler quotes'

/** A failed attempt whose error quotes the events. */
function quoting(...names: readonly string[]): { readonly attempt: Attempt } {
  return { attempt: { at: 1, ms: 1, error: `${QUOTE} ${names.join(' and ')}` } }
}

/** All texts that runs, dead letters and lanes still have. */
async function texts(t: ConformanceStage): Promise<readonly string[]> {
  const [runs, dead, lanes] = [await t.findAll('runs'), await t.findAll('dead'), await t.findAll('lanes')]
  const ended = [...runs, ...dead].flatMap(({ reason, attempts }) => [reason, ...attempts.map(({ error }) => error)])
  const under = lanes.flatMap(({ run }) => run?.attempts.map(({ error }) => error) ?? [])
  return [...ended, ...under].filter((text) => text.includes(QUOTE))
}

/** The names of all events in run records. */
async function recorded(t: ConformanceStage): Promise<readonly string[]> {
  return (await t.findAll('runs')).flatMap(({ events }) => t.names(events)).toSorted()
}

const LANE_Y: PurgeCall['what'] = { kind: 'lanes', ids: [laneId('flow', 'y')] }

async function purged(t: ConformanceStage, what: PurgeCall['what'] | string): Promise<void> {
  await t.store.purge({ what: typeof what === 'string' ? { kind: 'event', id: t.id(what) } : what, n: 1_000 })
}

export const purgedTexts: Suite = (rule) => {
  for (const [by, what] of [
    ['event', (t: ConformanceStage): PurgeCall['what'] => ({ kind: 'event', id: t.id('a') })],
    ['lane', (): PurgeCall['what'] => ({ kind: 'lanes', ids: [laneId('flow', 'k')] })],
    ['tenant', (): PurgeCall['what'] => ({ kind: 'tenant', tenant: 'acme' })],
  ] as const) {
    rule(`L15 by ${by}: the errors of a run that waits for its next attempt go`, async (t) => {
      await t.append('a', { tenant: 'acme' })
      await t.append('b')
      await t.settleOk(await t.claimOne(), retry(100), quoting('a'))
      await purged(t, what(t))
      assert.deepEqual(await texts(t), [])
    })

    rule(`L15 by ${by}: the errors of a dead letter and of the record of its run go`, async (t) => {
      await t.append('a', { tenant: 'acme' })
      await t.append('b')
      await t.settleOk(await t.claimOne(), { kind: 'dead', reason: `${QUOTE} a`, block: false }, quoting('a'))
      assert.equal((await texts(t)).length, 4)
      await purged(t, what(t))
      assert.deepEqual(await texts(t), [])
    })

    rule(`L15 by ${by}: the errors of a run that was done at last go`, async (t) => {
      await t.append('a', { tenant: 'acme' })
      await t.append('b')
      await t.settleOk(await t.claimOne(), retry(0), quoting('a'))
      await t.settleOk(await t.claimOne())
      assert.equal((await texts(t)).length, 1)
      await purged(t, what(t))
      assert.deepEqual(await texts(t), [])
    })
  }

  rule('L15 by lane: a body that goes at once takes the errors in lanes that ended before along', async (t) => {
    await t.append('a', { keys: ['x', 'y'] })
    await t.append('b', { key: 'x' })
    for (const run of await t.claim()) await t.settleOk(run, retry(0), quoting('a'))
    await t.drain()
    await purged(t, LANE_Y)
    assert.deepEqual([await texts(t), await recorded(t)], [[], ['b']])
  })

  rule('L15 by lane: a body that another lane needs takes the errors there along when it goes', async (t) => {
    await t.append('a', { keys: ['x', 'y'] })
    await t.append('b', { key: 'x' })
    await purged(t, LANE_Y)
    await t.settleOk(await t.claimOne(), retry(0), quoting('a'))
    await t.drain()
    assert.deepEqual([await texts(t), await recorded(t)], [[`${QUOTE} a`], ['a', 'b']])
    await t.maintain()
    assert.deepEqual([await texts(t), await recorded(t)], [[], ['b']])
  })

  rule('L15 L23 by event: the errors of an event whose body is gone by age go', async (t) => {
    await t.append('a', { dedupe: 'x', dedupeFor: DAY })
    await t.settleOk(await t.claimOne(), retry(0), quoting('a'))
    await t.drain()
    t.clock.advance(SECOND)
    await t.maintain({ events: { '': SECOND }, runs: { '': DAY } })
    assert.deepEqual([await texts(t), await recorded(t)], [[`${QUOTE} a`], ['a']])
    const reply = await t.store.purge({ what: { kind: 'event', id: t.id('a') }, n: 1 })
    assert.deepEqual([reply.events, reply.runs, reply.more], [0, 1, false])
    assert.deepEqual([await texts(t), await recorded(t)], [[], []])
    assert.equal((await t.append('again', { dedupe: 'x', body: 'a' })).kind, 'duplicate')
  })

  rule('L15 by event: the errors of a live run go, and its settlement leaves none', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), retry(0), quoting('a'))
    const run = await t.claimOne()
    await purged(t, 'a')
    assert.deepEqual(await texts(t), [])
    assert.equal(await t.settle(run, retry(0), quoting('a')), 'purged')
    assert.deepEqual(await texts(t), [])
  })

  rule('L15 L8 by event: a purge of the rest removes the errors of the accepted part', async (t) => {
    await t.appendEach(['a', 'b'])
    const outcome = { kind: 'partial', after: 0, dead: [], reason: `${QUOTE} b`, block: false } as const
    await t.settleOk(await t.claimOne(), { ...outcome, retry: [t.id('b')] }, quoting('b'))
    await t.settleOk(await t.claimOne())
    await purged(t, 'b')
    assert.deepEqual(await texts(t), [])
  })

  rule('L15 L8 by event: a purge of an accepted event removes the errors of the rest', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.settleOk(await t.claimOne(), retry(0), quoting('a'))
    const outcome = { kind: 'partial', after: 0, reason: 'no', block: false } as const
    await t.settleOk(await t.claimOne(), { ...outcome, retry: [t.id('b')], dead: [t.id('c')] })
    await purged(t, 'a')
    assert.deepEqual(await texts(t), [])
  })

  rule('L15 by event: the errors of other runs stay, in its lane and elsewhere', async (t) => {
    for (const [name, key] of [
      ['a', 'k'],
      ['b', 'k'],
      ['c', 'other'],
    ] as const) {
      await t.append(name, { key })
      await t.settleOk(await t.claimOne(), retry(0), quoting(name))
      await t.settleOk(await t.claimOne(), done)
    }
    await purged(t, 'a')
    assert.deepEqual((await texts(t)).toSorted(), [`${QUOTE} b`, `${QUOTE} c`])
  })

  rule('L15 by event: the reason crashed is not a handler’s text, and stays', async (t) => {
    await t.appendEach(['a', 'b'])
    for (let n = 0; n < 5; n++) {
      await t.claim()
      t.expireLeases()
    }
    assert.equal((await t.findAll('dead'))[0]?.reason, 'crashed')
    await purged(t, 'a')
    assert.equal((await t.findAll('dead'))[0]?.reason, 'crashed')
  })
}
