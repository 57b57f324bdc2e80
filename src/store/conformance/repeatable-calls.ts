// Every call may be repeated after a lost reply: the second one changes nothing that the first has not.
import assert from 'node:assert/strict'
import { laneId } from '../../model/identity.ts'
import { keys, only, sorted, type Suite } from './stage.ts'
import { bytes, calls, claimOf, dead, done, keeping, mark, place, request, SECOND } from './vocabulary.ts'

export const repeatableCalls: Suite = (rule) => {
  rule('append repeated: each event answers repeated and is in its lanes once', async (t) => {
    const events = [t.event('a', { key: 'x' }), t.event('b', { keys: ['x', 'y'] })]
    assert.deepEqual(
      (await t.send(...events)).map((answer) => answer.kind),
      ['stored', 'stored'],
    )
    assert.deepEqual(
      (await t.send(...events)).map((answer) => answer.kind),
      ['repeated', 'repeated'],
    )
    assert.deepEqual(
      (await t.claim()).map((run) => t.names(run)),
      [['a', 'b'], ['b']],
    )
  })

  rule('append repeated: an event that was marked has its mark once', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    await t.append('a', { marks: [mark('outbox')] })
    assert.equal((await t.all('marks')).length, 1)
  })

  rule('turn repeated: settles, publishes and claims once, and answers the same', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { key: 'b' })
    const publish = [t.event('p', { flow: 'next' })]
    const end = { whileRunning: 'window', keep: 0, attempt: undefined } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: done, publish, ...end }]
    const call = { process: 'p9', request: 3, settle, claim: [claimOf()] }
    const first = await t.turn(call)
    const second = await t.turn(call)
    assert.deepEqual([second.settled, second.claimed], [first.settled, first.claimed])
    assert.deepEqual(keys(second.claimed), ['b'])
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['p'])
    assert.equal((await t.all('runs')).length, 1)
  })

  rule('turn repeated: a settlement that was lost is lost again', async (t) => {
    await t.append('a')
    const run = await t.next()
    t.lapse()
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: done, ...end }]
    const call = { process: 'p9', request: 3, settle }
    assert.deepEqual((await t.turn(call)).settled, ['lost'])
    assert.deepEqual((await t.turn(call)).settled, ['lost'])
  })

  rule('renew repeated: ok, and a commit stays a commit', async (t) => {
    await t.append('a', { quiet: 1, max: 60 * SECOND })
    const run = await t.dueIn(1)
    assert.deepEqual([await t.renew(run, { commit: true }), await t.renew(run, { commit: true })], ['ok', 'ok'])
    await t.append('b', { quiet: 1, max: 60 * SECOND, cancel: true })
    assert.equal(await t.renew(run, { commit: true }), 'ok')
  })

  rule('steer repeated: already so', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, dead)
    assert.deepEqual([await t.steerDead(run.run, 'retry'), await t.steerDead(run.run, 'retry')], ['ok', 'already'])
    await t.append('b', { key: 'b', quiet: SECOND })
    assert.deepEqual([await t.steer('b', 'run-now'), await t.steer('b', 'run-now')], ['ok', 'already'])
    assert.deepEqual(sorted(keys(await t.claim())), ['b', 'k'])
  })

  rule('steer repeated: holding and dropping twice is holding and dropping once', async (t) => {
    await t.append('a', { quiet: SECOND })
    await t.hold('k', SECOND)
    const held = (await t.lane('k'))?.hold
    await t.hold('k', SECOND)
    assert.deepEqual((await t.lane('k'))?.hold, held)
    await t.steer('k', 'drop')
    await t.steer('k', 'drop')
    t.clock.advance(60 * SECOND)
    await t.nothing()
  })

  rule('purge repeated: nothing more to remove', async (t) => {
    await t.append('a')
    const what = { kind: 'lanes', ids: [laneId('flow', 'k')] } as const
    assert.equal((await t.store.purge({ what, n: 10 })).events, 1)
    const again = await t.store.purge({ what, n: 10 })
    assert.deepEqual([again.events, again.letters, again.runs, again.more], [0, 0, 0, false])
  })

  rule('reserve repeated: one slot', async (t) => {
    const requests = [request('t1', { api: calls(1, SECOND) }), request('t2', { api: calls(1, SECOND) })]
    const first = await t.store.reserve({ requests })
    const second = await t.store.reserve({ requests })
    assert.deepEqual(second.results, first.results)
    const third = only((await t.store.reserve({ requests: [request('t3', { api: calls(1, SECOND) })] })).results)
    assert.equal(third.kind === 'granted' && third.wait, 2_200)
  })

  rule('regulate repeated: a pause is as long, a slot goes back once', async (t) => {
    const pause = { name: 'api', act: { kind: 'pause', for: 5 * SECOND, slow: true } } as const
    assert.equal((await t.store.regulate(pause)).pausedFor, 5 * SECOND)
    assert.equal((await t.store.regulate(pause)).pausedFor, 5 * SECOND)
    const other = { other: calls(1, SECOND) }
    await t.store.reserve({ requests: [request('t1', other), request('t2', other)] })
    const release = { name: 'other', act: { kind: 'release', ticket: 't2' } } as const
    await t.store.regulate(release)
    await t.store.regulate(release)
    const next = only((await t.store.reserve({ requests: [request('t3', other)] })).results)
    assert.equal(next.kind === 'granted' && next.wait, 1_100)
  })

  rule('pressure repeated: raised once', async (t) => {
    const flows = [{ flow: 'flow', raise: true }]
    assert.deepEqual((await t.store.pressure({ flows })).levels, (await t.store.pressure({ flows })).levels)
  })

  rule('writeDocs repeated: a conflict that shows the revision of one’s own write', async (t) => {
    const call = {
      writes: [{ kind: 'flow', id: 'a', ifRev: 0, body: bytes('one') }],
      raiseRoutes: true,
      audit: { who: 'ada', what: 'made a' },
    }
    const first = await t.store.writeDocs(call)
    const second = await t.store.writeDocs(call)
    assert.ok(first.kind === 'written' && second.kind === 'conflict')
    assert.equal(second.rev, first.revs[0])
    assert.equal(second.routes, first.routes)
    assert.equal((await t.all('audit')).length, 1)
  })

  rule('unrouted, place and upkeep repeated: nothing twice', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const call = { n: 10, lease: SECOND, reasons: ['outbox'], flows: [] } as const
    const leased = only((await t.store.unrouted(call)).marks)
    assert.deepEqual((await t.store.unrouted(call)).marks, [])
    const items = [{ kind: 'mark', id: leased.id, token: leased.token, places: [place()], marks: [] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.store.place({ routes: t.routes, items })
    const run = await t.next()
    assert.deepEqual(t.names(run), ['a'])
    await t.end(run)
    t.clock.advance(SECOND)
    const upkeep = { budget: 1_000, policy: keeping({ events: { '': 0 }, runs: { '': 0 } }) }
    assert.equal((await t.store.upkeep(upkeep)).did.events, 1)
    assert.equal((await t.store.upkeep(upkeep)).did.events, 0)
  })

  rule('a repeated turn and a repeated replay are known after upkeep as well', async (t) => {
    await t.append('a')
    await t.end(await t.next())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), places: [place()] }] as const
    await t.store.place({ routes: t.routes, items })
    const call = { process: 'p9', request: 3, claim: [claimOf({ lease: 3_600 * SECOND })] }
    const first = await t.turn(call)
    t.clock.advance(60 * SECOND)
    await t.upkeep({ runs: { '': 0 } })
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['already'])
    assert.deepEqual(keys((await t.turn(call)).claimed), keys(first.claimed))
    await assert.rejects(t.turn({ ...call, request: 2 }), { code: 'REQUEST_STALE' })
  })
}
