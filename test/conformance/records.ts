// Searches list records newest first, page by page, by their fields. A page never repeats or skips a record.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import type { CountReply, FindReply } from '../../src/store/contract/index.ts'
import type { Suite } from './stage.ts'
import { createUnrouted, deadAndBlocking, dead, done, dropped, retry } from './builders.ts'

export const records: Suite = (rule) => {
  rule('find gives events newest first, page by page, each once', async (t) => {
    const names = Array.from({ length: 25 }, (_, n) => `e${n}`)
    for (const name of names) {
      await t.append(name, { quiet: 60_000 })
      t.clock.advance(1)
    }
    for (const n of [1, 4, 25, 100]) {
      const found = await t.findAll('events', {}, n)
      assert.deepEqual(t.names(found.map((event) => event.id)), names.toReversed())
    }
  })

  rule('find lists oldest first on request, with events that arrive between pages', async (t) => {
    const names = Array.from({ length: 7 }, (_, n) => `e${n}`)
    for (const name of names) await t.append(name, { tenant: name === 'e3' ? 'other' : 'acme', quiet: 60_000 })
    const seen: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const call = { kind: 'events', filter: { tenant: 'acme' }, cursor, n: 2, oldestFirst: true } as const
      const page: FindReply<'events'> = await t.store.find(call)
      if (cursor === '') await t.append('late', { tenant: 'acme' })
      seen.push(...page.items.map((event) => event.id))
      cursor = page.next
    }
    assert.deepEqual(t.names(seen), ['e0', 'e1', 'e2', 'e4', 'e5', 'e6', 'late'])
  })

  rule('find is steady: events that arrive between pages neither repeat nor hide anything', async (t) => {
    for (let n = 0; n < 6; n++) {
      await t.append(`e${n}`)
      t.clock.advance(1)
    }
    const first = await t.store.find({ kind: 'events', filter: {}, cursor: '', n: 3 })
    await t.append('late')
    const seen = [...first.items]
    for (let cursor = first.next; cursor !== undefined;) {
      const page = await t.store.find({ kind: 'events', filter: {}, cursor, n: 3 })
      seen.push(...page.items)
      cursor = page.next
    }
    assert.deepEqual(t.names(seen.map((event) => event.id)), ['e5', 'e4', 'e3', 'e2', 'e1', 'e0'])
  })

  rule('find continues behind a record that is gone by the next page', async (t) => {
    for (const key of ['a', 'b', 'c', 'd']) {
      await t.append(key, { key, quiet: 60_000 })
      t.clock.advance(1)
    }
    const first = await t.store.find({ kind: 'lanes', filter: {}, cursor: '', n: 2 })
    assert.deepEqual(
      first.items.map((lane) => lane.key),
      ['d', 'c'],
    )
    await t.store.steer({ what: 'lanes', ids: [laneId('flow', 'c')], act: { kind: 'drop' } })
    const second = await t.store.find({ kind: 'lanes', filter: {}, cursor: first.next ?? '', n: 2 })
    assert.deepEqual(
      second.items.map((lane) => lane.key),
      ['b', 'a'],
    )
  })

  rule('find filters events by source, type, tenant and time, together too', async (t) => {
    const start = t.clock.now()
    for (const source of ['shop', 'bank']) {
      for (const type of ['paid', 'sent']) {
        for (const tenant of ['acme', 'globex']) {
          await t.append(`${source} ${type} ${tenant}`, { source, type, tenant })
          t.clock.advance(100)
        }
      }
    }
    const found = async (filter: Parameters<typeof t.findAll>[1]): Promise<readonly string[]> =>
      t.names((await t.findAll('events', filter, 2)).map((event) => event.id))
    assert.equal((await found({ source: 'bank' })).length, 4)
    assert.deepEqual(await found({ type: 'paid', tenant: 'globex' }), ['bank paid globex', 'shop paid globex'])
    assert.deepEqual(await found({ source: 'shop', type: 'sent', tenant: 'acme' }), ['shop sent acme'])
    assert.deepEqual(await found({ from: start + 150, to: start + 350 }), ['shop sent globex', 'shop sent acme'])
    assert.deepEqual(await found({ source: 'nobody' }), [])
    await t.append('elsewhere', { key: 'elsewhere' })
    assert.deepEqual(await found({ lane: laneId('flow', 'elsewhere') }), ['elsewhere'])
  })

  rule('find and count filter events by subject, together with the other fields', async (t) => {
    // The last two have the same first kilobyte: an index entry holds less.
    const long = 'x'.repeat(16_000)
    const subjects = ['ada', 'bob', '', 'ada\0', 'Ada', `${long}1`, `${long}2`] as const
    for (const subject of subjects) {
      for (const tenant of ['', 'acme']) await t.append(`${subjects.indexOf(subject)}${tenant}`, { subject, tenant })
    }
    const found = async (filter: Parameters<typeof t.findAll>[1]): Promise<readonly string[]> =>
      t.names((await t.findAll('events', filter, 1)).map((event) => event.id))
    assert.deepEqual(await found({ subject: 'ada' }), ['0acme', '0'])
    assert.deepEqual(await found({ subject: 'ada', tenant: 'acme' }), ['0acme'])
    assert.deepEqual(await found({ subject: 'ada', tenant: '' }), ['0'])
    assert.deepEqual(await found({ subject: 'ada\0' }), ['3acme', '3'])
    assert.deepEqual(await found({ subject: `${long}1` }), ['5acme', '5'])
    assert.deepEqual(await found({ subject: 'nobody' }), [])
    const counted = await t.store.count({ kind: 'events', filter: { subject: 'bob' }, cursor: '', atMost: 10 })
    assert.deepEqual([counted.count, counted.next], [2, undefined])
    const up = await t.store.find({ kind: 'events', filter: { subject: 'bob' }, cursor: '', n: 1, oldestFirst: true })
    assert.deepEqual(t.names(up.items.map((event) => event.id)), ['1'])
  })

  rule('dead letters and unrouted events are found by the subject of one of their events', async (t) => {
    await t.append('a', { subject: 'ada' })
    await t.append('b', { subject: 'bob' })
    await t.settleOk(await t.claimOne(), dead)
    await t.append('c', { subject: 'bob', key: 'c' })
    await t.settleOk(await t.claimOne(), dead)
    // Of the lane of a dead letter, but not in it.
    await t.append('d', { subject: 'cy', keys: ['k', 'c'] })
    await t.append('e', { subject: 'ada', unrouted: [createUnrouted('key-failed')] })
    const deadLetters = async (subject: string): Promise<readonly string[]> =>
      (await t.findAll('dead', { subject }, 1)).map((deadLetter) => deadLetter.key)
    assert.deepEqual(
      [await deadLetters('ada'), await deadLetters('bob'), await deadLetters('cy')],
      [['k'], ['c', 'k'], []],
    )
    const unrouted = async (subject: string): Promise<readonly string[]> =>
      t.names((await t.findAll('unrouted', { subject }, 1)).map(({ event }) => event))
    assert.deepEqual([await unrouted('ada'), await unrouted('bob')], [['e'], []])
    assert.equal((await t.store.count({ kind: 'dead', filter: { subject: 'bob' }, cursor: '', atMost: 9 })).count, 2)
  })

  rule('find and count leave out sources with the given prefix', async (t) => {
    for (const source of ['own.', 'own.clock', 'owner', 'shop', 'not own.']) await t.append(source, { source })
    const filter = { withoutSource: 'own.' }
    assert.deepEqual(t.names((await t.findAll('events', filter)).map((event) => event.id)), [
      'not own.',
      'shop',
      'owner',
    ])
    assert.equal((await t.store.count({ kind: 'events', filter, cursor: '', atMost: 10 })).count, 3)
    assert.deepEqual(await t.findAll('lanes', filter), [])
  })

  rule('find and count reject a cursor that no page has returned', async (t) => {
    await t.append('a')
    const kinds = ['events', 'lanes', 'runs', 'dead', 'unrouted', 'audit'] as const
    for (const cursor of ['x', '-1', '1.5', '1e3', ' ', '9007199254740992', '99999999999999999999', '9'.repeat(400)]) {
      for (const kind of kinds) {
        const call = { kind, filter: {}, cursor } as const
        const refused = { code: 'REQUEST_INVALID', status: 400, message: /cursor/ }
        await assert.rejects(t.store.find({ ...call, n: 10 }), refused, `find ${kind} ${cursor}`)
        await assert.rejects(t.store.find({ ...call, n: 10, oldestFirst: true }), refused)
        await assert.rejects(t.store.count({ ...call, atMost: 10 }), refused)
      }
    }
    assert.deepEqual(t.names((await t.findAll('events')).map((event) => event.id)), ['a'])
    const { items } = await t.store.find({ kind: 'events', filter: {}, cursor: '9007199254740991', n: 10 })
    assert.equal(items.length, 1)
  })

  rule('an event is shown with its size, its lanes and, one by one, its bytes', async (t) => {
    await t.append('a', { keys: ['x', 'y'], body: 'hello', request: 'POST /' })
    const [listed] = await t.findAll('events')
    assert.deepEqual([listed?.size, listed?.purged, listed?.duplicates, listed?.arrived], [5, false, 0, t.clock.now()])
    assert.deepEqual(listed?.lanes.toSorted(), [laneId('flow', 'x'), laneId('flow', 'y')].toSorted())
    const record = await t.getEventRecord('a')
    assert.equal(Buffer.from(record?.body ?? []).toString(), 'hello')
    assert.equal(Buffer.from(record?.request ?? []).toString(), 'POST /')
  })

  rule('lanes are found by flow and tenant while they wait or run', async (t) => {
    await t.append('a', { key: 'a', tenant: 'acme', quiet: 60_000 })
    await t.append('b', { key: 'b', tenant: 'globex' })
    await t.append('c', { flow: 'mail', key: 'c', tenant: 'acme', quiet: 60_000 })
    const live = await t.claimOne()
    const found = async (filter: Parameters<typeof t.findAll>[1]): Promise<readonly string[]> =>
      (await t.findAll('lanes', filter, 1)).map((lane) => lane.key).toSorted()
    assert.deepEqual(await found({}), ['a', 'b', 'c'])
    assert.deepEqual(await found({ flow: 'flow' }), ['a', 'b'])
    assert.deepEqual(await found({ tenant: 'acme' }), ['a', 'c'])
    assert.deepEqual(
      (await t.findAll('lanes', {}, 2)).map((lane) => lane.key),
      ['c', 'b', 'a'],
    )
    const lane = await t.getLane('b')
    assert.deepEqual([lane?.key, lane?.flow, lane?.tenant, lane?.run?.id], ['b', 'flow', 'globex', live.runId])
    assert.equal((await t.getLane('a'))?.waiting, 1)
    assert.equal(await t.getLane('nobody'), undefined)
  })

  rule('finished runs are found newest first, by flow and lane, with how they ended', async (t) => {
    const ends = [done, dropped, dead] as const
    for (const outcome of ends) {
      await t.append(outcome.kind, { key: outcome.kind })
      const started = t.clock.now()
      const run = await t.claimOne()
      t.clock.advance(100)
      await t.settleOk(run, outcome)
      const { item } = await t.store.get({ kind: 'runs', id: run.runId })
      assert.deepEqual(
        [item?.kind, item?.key, item?.lane, item?.started, item?.ended, t.names(item?.events ?? [])],
        [outcome.kind, outcome.kind, run.lane, started, started + 100, [outcome.kind]],
      )
    }
    assert.deepEqual(
      (await t.findAll('runs', { flow: 'flow' }, 1)).map((run) => run.kind),
      ['dead', 'dropped', 'done'],
    )
    assert.deepEqual(
      (await t.findAll('runs', { lane: laneId('flow', 'done') })).map((run) => run.kind),
      ['done'],
    )
    assert.deepEqual(await t.findAll('runs', { flow: 'mail' }), [])
  })

  rule('dead letters are found newest first, by flow, lane and tenant', async (t) => {
    for (const [key, tenant] of [
      ['a', 'acme'],
      ['b', 'globex'],
      ['c', 'acme'],
    ] as const) {
      await t.append(key, { key, tenant })
      await t.settleOk(await t.claimOne(), key === 'b' ? deadAndBlocking : dead)
      t.clock.advance(10)
    }
    const found = async (filter: Parameters<typeof t.findAll>[1]): Promise<readonly string[]> =>
      (await t.findAll('dead', filter, 1)).map((deadLetter) => deadLetter.key)
    assert.deepEqual(await found({}), ['c', 'b', 'a'])
    assert.deepEqual(await found({ tenant: 'acme' }), ['c', 'a'])
    assert.deepEqual(await found({ lane: laneId('flow', 'b') }), ['b'])
    assert.deepEqual(await found({ flow: 'mail' }), [])
  })

  rule('get returns undefined for a missing record of every kind', async (t) => {
    for (const kind of ['events', 'lanes', 'runs', 'dead', 'unrouted', 'audit'] as const) {
      assert.equal((await t.store.get({ kind, id: '999999' })).item, undefined)
    }
  })

  rule('count counts up to a bound and returns whether it reached the bound', async (t) => {
    for (let n = 0; n < 7; n++) await t.append(`e${n}`, { key: `k${n}`, tenant: n < 5 ? 'acme' : 'globex', quiet: 100 })
    const count = async (kind: 'events' | 'lanes', tenant: string, atMost: number): Promise<readonly unknown[]> => {
      const reply = await t.store.count({ kind, filter: { tenant }, cursor: '', atMost })
      return [reply.count, reply.next === undefined]
    }
    for (const kind of ['events', 'lanes'] as const) {
      assert.deepEqual(await count(kind, 'acme', 100), [5, true])
      assert.deepEqual(await count(kind, 'acme', 3), [3, false])
      assert.deepEqual(await count(kind, 'nobody', 100), [0, true])
    }
  })

  rule('count continues where it stopped, and counts everything once', async (t) => {
    for (let n = 0; n < 7; n++) await t.append(`e${n}`, { quiet: 100 })
    for (const atMost of [1, 3, 7, 100]) {
      let sum = 0
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const reply: CountReply = await t.store.count({ kind: 'events', filter: {}, cursor, atMost })
        assert.ok(reply.count <= atMost)
        sum += reply.count
        cursor = reply.next
      }
      assert.equal(sum, 7)
    }
  })

  rule('a lane that waits for its next attempt shows its run, its tries and its errors', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(5_000), { attempt: { at: t.clock.now(), ms: 12, error: 'refused' } })
    const lane = await t.getLane('k')
    assert.deepEqual([lane?.run?.id, lane?.run?.tries, lane?.due], [run.runId, 1, t.clock.now() + 5_000])
    assert.deepEqual(
      lane?.run?.attempts.map((attempt) => attempt.error),
      ['refused'],
    )
  })
}
