// What was acknowledged survives a restart, counters and all: nothing is lost, nothing runs twice, no token comes again.
import assert from 'node:assert/strict'
import { keys, only, type Suite } from './stage.ts'
import {
  again,
  blocking,
  bytes,
  calls,
  claimOf,
  dead,
  done,
  mark,
  place,
  request,
  retry,
  SECOND,
} from './vocabulary.ts'

export const durability: Suite = (rule) => {
  rule('durable: the store says so', async (t) => {
    assert.equal((await t.store.stats()).durable.yes, true)
  })

  rule('durable: events, windows and their order', async (t) => {
    await t.append('a', { key: 'a', quiet: 200 })
    await t.append('b', { key: 'b', quiet: 100, body: new Uint8Array([0, 255, 10]) })
    await t.append('b2', { key: 'b', quiet: 100 })
    await t.append('c', { key: 'c', quiet: 100 })
    await t.reopen()
    t.clock.advance(99)
    await t.nothing()
    t.clock.advance(101)
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['b', ['b', 'b2']],
        ['c', ['c']],
        ['a', ['a']],
      ],
    )
    assert.deepEqual(Buffer.from(runs[0]?.events[0]?.body ?? []), Buffer.from([0, 255, 10]))
  })

  rule('L1 durable: a live run keeps its lease and its token', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.reopen()
    await t.nothing({ process: 'p2' })
    assert.equal(await t.renew(run), 'ok')
    await t.reopen()
    assert.equal(await t.settle(run, done), 'ok')
    await t.reopen()
    await t.nothing()
  })

  rule('L1 durable: tokens and tickets go on where they were, though every row is gone', async (t) => {
    const tokens: number[] = []
    for (let n = 0; n < 4; n++) {
      await t.append(`e${n}`)
      const run = await t.next()
      tokens.push(run.token)
      await t.end(run)
      t.clock.advance(SECOND)
      await t.upkeep({ events: { '': 0 }, runs: { '': 0 } })
      await t.reopen()
    }
    assert.equal(new Set(tokens).size, 4)
    assert.deepEqual(
      tokens.toSorted((a, b) => a - b),
      tokens,
    )
  })

  rule('L5 durable: equal deadlines keep their order over a restart between them', async (t) => {
    await t.append('a', { key: 'a', every: SECOND })
    await t.reopen()
    await t.append('b', { key: 'b', every: SECOND })
    await t.reopen()
    t.clock.advance(SECOND)
    assert.deepEqual(keys(await t.claim()), ['a', 'b'])
  })

  rule('L8 L12 durable: tries, lapses, state and attempts', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, retry(0), { attempt: { at: t.clock.now(), ms: 7, error: 'refused' } })
    await t.end(await t.next(), again(0, 'c3RhdGU='))
    await t.next()
    t.lapse()
    await t.reopen()
    const back = await t.next()
    assert.deepEqual(
      [back.run, back.tries, back.lapses, back.state64, t.names(back)],
      [run.run, 1, 1, 'c3RhdGU=', ['a']],
    )
    await t.end(back, dead)
    await t.reopen()
    assert.deepEqual(
      (await t.letter(run.run))?.attempts.map((attempt) => attempt.error),
      ['refused'],
    )
  })

  rule('L9 durable: dead letters, what they block, and what is queued', async (t) => {
    await t.append('a', { key: 'a' })
    const a = await t.next()
    await t.end(a, blocking)
    await t.append('b', { key: 'b' })
    const b = await t.next()
    await t.end(b, dead)
    await t.append('a2', { key: 'a' })
    await t.steerDead(b.run, 'retry')
    await t.reopen()
    assert.deepEqual(keys(await t.claim()), ['b'])
    assert.equal(await t.steerDead(a.run, 'drop'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['a2'])
  })

  rule('L10 durable: identities, and that an event was ours', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-' })
    await t.end(await t.next())
    await t.reopen()
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: '-' }), { kind: 'duplicate', of: t.id('a') })
    assert.deepEqual(await t.append('a', { dedupe: 'x', body: '-' }), { kind: 'repeated' })
    await t.reopen()
    assert.equal((await t.record('a'))?.duplicates, 1)
  })

  rule('L12 durable: the last request of each process', async (t) => {
    await t.append('a')
    const call = { process: 'p1', request: 9, claim: [claimOf()] }
    const first = await t.turn(call)
    await t.reopen()
    const second = await t.turn(call)
    assert.deepEqual(keys(first.claimed), ['k'])
    assert.deepEqual(
      second.claimed.map((run) => [run.token, run.run, t.names(run)]),
      first.claimed.map((run) => [run.token, run.run, t.names(run)]),
    )
    await assert.rejects(t.turn({ ...call, request: 8 }), { code: 'REQUEST_STALE' })
  })

  rule('L6c durable: a request to cancel, and a commit', async (t) => {
    const words = { quiet: 1, max: 60 * SECOND }
    await t.append('a', { ...words, key: 'asked' })
    await t.append('b', { ...words, key: 'committed' })
    t.clock.advance(1)
    const [asked, committed] = await t.claim()
    assert.ok(asked && committed)
    await t.renew(committed, { commit: true })
    await t.append('c', { ...words, key: 'asked', cancel: true })
    await t.reopen()
    await t.append('d', { ...words, key: 'committed', cancel: true })
    assert.deepEqual([await t.renew(asked), await t.renew(committed)], ['cancel', 'ok'])
  })

  rule('L14 durable: pauses and holds', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { flow: 'mail', key: 'b' })
    await t.hold('a', 60 * SECOND)
    await t.pause('mail')
    await t.reopen()
    await t.nothing()
    await t.nothing({ flow: 'mail' })
    await t.resume('mail')
    assert.deepEqual(keys(await t.claim({ flow: 'mail' })), ['b'])
    assert.deepEqual(keys([await t.dueIn(60 * SECOND)]), ['a'])
  })

  rule('L16 durable: replays, and that they were made', async (t) => {
    await t.append('a')
    await t.end(await t.next())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), places: [place()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.reopen()
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['already'])
    assert.equal((await t.next()).rank, 1)
  })

  rule('L2 L18 durable: marks, documents, the audit and the epoch of the routes', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const writes = [{ kind: 'flow', id: 'a', ifRev: 0, body: bytes('one') }]
    const written = await t.store.writeDocs({ writes, raiseRoutes: true, audit: { who: 'ada', what: 'made a' } })
    const trail = await t.all('audit')
    await t.reopen()
    assert.equal((await t.store.stats()).routes, written.routes)
    assert.deepEqual(await t.append('b'), { kind: 'routes-old' })
    const { docs } = await t.store.readDocs({ kind: 'flow', ids: ['a'], after: '', n: 1 })
    assert.deepEqual(
      docs.map((doc) => [doc.rev, Buffer.from(doc.body).toString()]),
      [[written.kind === 'written' && written.revs[0], 'one']],
    )
    assert.deepEqual(await t.all('audit'), trail)
    const { marks } = await t.store.unrouted({ n: 10, lease: SECOND, reasons: ['outbox'], flows: [] })
    assert.deepEqual(
      marks.map((leased) => t.names([leased.event.id])),
      [['a']],
    )
  })

  rule('M1 M3 durable: slots, tickets and pauses of limits', async (t) => {
    const api = { api: calls(1, SECOND) }
    await t.store.reserve({ requests: [request('t1', api), request('t2', api)] })
    await t.reopen()
    const { results } = await t.store.reserve({ requests: [request('t2', api), request('t3', api)] })
    assert.deepEqual(
      results.map((each) => each.kind === 'granted' && each.wait),
      [1_100, 2_200],
    )
    const paused = await t.store.regulate({ name: 'api', act: { kind: 'pause', for: 60 * SECOND, slow: false } })
    await t.reopen()
    const after = only((await t.store.reserve({ requests: [request('t2', api)] })).results)
    assert.deepEqual(after, { kind: 'granted', wait: 60 * SECOND, freshFor: 100, epoch: paused.epoch })
  })

  rule('L5g L20 L22 durable: turns of groups, permits and pressure', async (t) => {
    for (const key of ['a0', 'a1', 'b0']) await t.append(key, { key, group: key.slice(0, 1) })
    assert.deepEqual(keys(await t.claim({ slots: 1, perGroup: 5 })), ['a0'])
    const wants = [{ name: 'flow', want: 3, max: 3 }]
    await t.store.permits({ process: 'p1', lease: SECOND, wants })
    const flows = [{ flow: 'flow', raise: true }]
    await t.store.pressure({ flows })
    await t.reopen()
    assert.deepEqual(keys(await t.claim({ slots: 1, perGroup: 5 })), ['b0'])
    assert.deepEqual((await t.store.permits({ process: 'p2', lease: SECOND, wants })).granted, [0])
    assert.deepEqual((await t.store.pressure({ flows: [{ flow: 'flow', raise: false }] })).levels, [0.25])
  })
}
