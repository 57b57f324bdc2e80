// Each item of a call is atomic by itself: an invalid item never fails the others, and leaves nothing half done.
import assert from 'node:assert/strict'
import type { EventToStore } from '../../src/store/contract/index.ts'
import { getKeys, type Suite } from './stage.ts'
import {
  createLimit,
  createClaimRequest,
  DAY,
  done,
  createUnrouted,
  createPlacement,
  createReserveRequest,
  retry,
  SECOND,
} from './builders.ts'

/** Events that a store may reject, but that must not spoil a batch. */
const bad: Readonly<Record<string, (event: EventToStore) => EventToStore>> = {
  'a window that is no number': (event) => ({
    ...event,
    placements: [{ ...createPlacement({ key: 'bad' }), quiet: Number.NaN }],
  }),
  'a time that is no number': (event) => ({ ...event, time: Number.NaN }),
  'half a surrogate pair for a key': (event) => ({ ...event, placements: [createPlacement({ key: '\ud800' })] }),
  'half a surrogate pair for a subject': (event) => ({ ...event, subject: '\udfff' }),
  'a key of a megabyte': (event) => ({ ...event, placements: [createPlacement({ key: 'k'.repeat(1_000_000) })] }),
  'no id': (event) => ({ ...event, id: '' }),
  'a time before all times': (event) => ({ ...event, time: -1e15 }),
}

export const atomicItems: Suite = (rule) => {
  for (const [name, spoil] of Object.entries(bad)) {
    rule(`append: ${name} fails no neighbour, and is rejected whole or stored and run`, async (t) => {
      const spoilt = spoil(t.event('spoilt', { key: 'bad' }))
      const answers = await t.appendEvents(t.event('before', { key: 'a' }), spoilt, t.event('after', { key: 'b' }))
      assert.deepEqual([answers[0], answers[2]], [{ kind: 'stored' }, { kind: 'stored' }])
      const runs = await t.claim()
      assert.deepEqual(
        getKeys(runs).filter((key) => key === 'a' || key === 'b'),
        ['a', 'b'],
      )
      const mine = runs.filter((run) => run.key !== 'a' && run.key !== 'b')
      const [, answer] = answers
      if (answer?.kind === 'refused') {
        assert.ok(answer.field !== '' && answer.fix !== '', 'it says what to correct')
        assert.deepEqual(mine, [])
        assert.equal((await t.store.get({ kind: 'events', id: spoilt.id })).item, undefined)
      } else {
        assert.deepEqual(
          mine.map((run) => [run.key, run.events[0]?.id]),
          [[spoilt.placements[0]?.key, spoilt.id]],
        )
      }
    })
  }

  rule('append: a time beyond the range of Date is rejected, because no delivery could format it', async (t) => {
    const at = (time: number): EventToStore => ({ ...t.event(`at ${time}`), time })
    const answers = await t.appendEvents(at(8.64e15), at(8.64e15 + 1), at(-8.64e15), at(-8.64e15 - 1))
    assert.deepEqual(
      answers.map((answer) => (answer.kind === 'refused' ? answer.field : answer.kind)),
      ['stored', 'time', 'stored', 'time'],
    )
  })

  rule('append: duplicates and conflicts fail no neighbour', async (t) => {
    await t.append('a', { dedupe: 'x', body: '1' })
    const answers = await t.appendEvents(
      t.event('b', { dedupe: 'x', body: '1' }),
      t.event('c'),
      t.event('d', { dedupe: 'x', body: '2' }),
      t.event('e'),
    )
    assert.deepEqual(
      answers.map((answer) => answer.kind),
      ['duplicate', 'stored', 'conflict', 'stored'],
    )
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'c', 'e'])
  })

  rule('settleAndClaim: a lost settlement fails no neighbour, nor the claims of the call', async (t) => {
    for (const key of ['a', 'b', 'c']) await t.append(key, { key })
    const runs = await t.claim()
    await t.append('d', { key: 'd' })
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = runs.map((run) => ({
      ...end,
      lane: run.lane,
      token: run.key === 'b' ? run.token + 1_000_000 : run.token,
      outcome: done,
    }))
    const reply = await t.settleAndClaim({ settle, claim: [createClaimRequest()] })
    assert.deepEqual(reply.settled, ['ok', 'lost', 'ok'])
    assert.deepEqual(getKeys(reply.claimed), ['d'])
  })

  rule('renew: a run that is lost fails no neighbour', async (t) => {
    for (const key of ['a', 'b', 'c']) await t.append(key, { key })
    const runs = (await t.claim()).map((run) => ({ lane: run.lane, token: run.token, commit: false }))
    const broken = runs.map((run, n) => (n === 1 ? { ...run, token: -1 } : run))
    assert.deepEqual((await t.store.renew({ lease: SECOND, runs: broken })).results, ['ok', 'lost', 'ok'])
  })

  rule('place: an item that is lost or gone fails no neighbour', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    await t.append('b', { unrouted: [createUnrouted('outbox')] })
    const { unrouted } = await t.store.claimUnrouted({ n: 10, lease: SECOND, reasons: ['outbox'], flows: [] })
    const items = unrouted.map(
      ({ id, token }) => ({ kind: 'unrouted', id, token, placements: [createPlacement()], unrouted: [] }) as const,
    )
    const [first, second] = items
    assert.ok(first && second)
    const gone = { kind: 'replay', replay: 'r', event: 'nobody', placements: [createPlacement()] } as const
    const mixed = [{ ...first, token: -1 }, gone, second]
    assert.deepEqual((await t.store.place({ routes: t.routes, items: mixed })).results, ['lost', 'gone', 'placed'])
    assert.deepEqual(t.names(await t.claimOne()), t.names([unrouted[1]?.event.id ?? '']))
  })

  rule('steer: an unknown id fails no neighbour', async (t) => {
    const deadLetters: string[] = []
    for (const key of ['a', 'b']) {
      await t.append(key, { key })
      const run = await t.claimOne()
      deadLetters.push(run.runId)
      await t.settleOk(run, { kind: 'dead', reason: '', block: false })
    }
    const ids = ['nobody', deadLetters[0] ?? '', 'nobody else', deadLetters[1] ?? '']
    const { results } = await t.store.steer({ what: 'dead', ids, act: 'retry' })
    assert.deepEqual(results, ['missing', 'ok', 'missing', 'ok'])
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })

  rule('reserve: a rejected request fails no neighbour', async (t) => {
    const requests = [
      createReserveRequest('t1', { api: createLimit(1, SECOND) }),
      createReserveRequest('t2', { api: createLimit(1, SECOND, { cost: 2 }) }),
      createReserveRequest('t3', { api: createLimit(1, SECOND) }),
    ]
    const { results } = await t.store.reserve({ requests })
    assert.deepEqual(
      results.map((each) => (each.kind === 'refused' ? each.limit : each.wait)),
      [0, 'api', 1_100],
    )
  })

  rule('settleAndClaim: an invalid published event does not undo other settlements', async (t) => {
    for (const key of ['a', 'b']) await t.append(key, { key })
    const [a, b] = await t.claim()
    assert.ok(a && b)
    const end = { whileRunning: 'window', keep: 0, attempt: undefined } as const
    const spoilt = { ...t.event('spoilt', { flow: 'next' }), time: Number.NaN }
    const good = t.event('good', { flow: 'next' })
    const settle = [
      { lane: a.lane, token: a.token, outcome: done, publish: [spoilt], ...end },
      { lane: b.lane, token: b.token, outcome: retry(DAY), publish: [good], ...end },
    ]
    const reply = await t.settleAndClaim({ settle })
    assert.equal(reply.settled[1], 'ok')
    assert.ok((await t.claim({ flow: 'next' })).flatMap((run) => t.names(run)).includes('good'))
    assert.equal(await t.renew(b), 'lost')
  })
}
