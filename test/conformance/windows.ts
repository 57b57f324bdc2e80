// L3: a window is two durations, quiet and max. No event waits for its window longer than its own max.
import assert from 'node:assert/strict'
import { NEVER } from '../../src/clock.ts'
import { getKeys, type Suite } from './stage.ts'
import { snoozed, DAY, retry } from './builders.ts'

export const windows: Suite = (rule) => {
  rule('L3 without a window an event is due at once', async (t) => {
    await t.append('a')
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L3 quiet is a debounce: due that long after the latest event', async (t) => {
    await t.append('a', { quiet: 100 })
    t.clock.advance(99)
    await t.append('b', { quiet: 100 })
    t.clock.advance(60)
    await t.append('c', { quiet: 100 })
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a', 'b', 'c'])
  })

  rule('L3 quiet is that of the latest event', async (t) => {
    await t.append('a', { quiet: 1_000 })
    t.clock.advance(100)
    await t.append('b', { quiet: 10 })
    assert.deepEqual(t.names(await t.claimOneAfter(10)), ['a', 'b'])
  })

  rule('L3 max bounds the wait of the first event, however many follow', async (t) => {
    for (let n = 0; n < 4; n++) {
      await t.append(`e${n}`, { quiet: 100, max: 250 })
      t.clock.advance(60)
      await t.assertNothingReady()
    }
    assert.equal((await t.claimOneAfter(10)).events.length, 4)
  })

  rule('L3 no event waits past its own max, regardless of the windows of its neighbours', async (t) => {
    await t.append('patient', { key: 'late', quiet: 1_000, max: 5_000 })
    await t.append('urgent', { key: 'early', quiet: 50, max: 100 })
    t.clock.advance(40)
    await t.append('urgent too', { key: 'late', quiet: 1_000, max: 100 })
    await t.append('patient too', { key: 'early', quiet: 5_000, max: 50_000 })
    assert.equal((await t.claimOneAfter(60)).key, 'early')
    assert.deepEqual(t.names(await t.claimOneAfter(40)), ['patient', 'urgent too'])
  })

  rule('L3 events of a finished run no longer bound those that follow', async (t) => {
    await t.append('a', { quiet: 100, max: 150 })
    await t.settleOk(await t.claimOneAfter(100))
    await t.append('b', { quiet: 100, max: 1_000 })
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })

  rule('L3 every is counted from the first event and not moved by the others', async (t) => {
    await t.append('a', { every: 1_000 })
    t.clock.advance(400)
    await t.append('b', { every: 1_000 })
    t.clock.advance(400)
    await t.append('c', { every: 1_000 })
    assert.deepEqual(t.names(await t.claimOneAfter(200)), ['a', 'b', 'c'])
  })

  rule('L3 the event that reaches maxEvents makes the window end now', async (t) => {
    await t.appendEach(['a', 'b'], { quiet: 1_000, maxEvents: 3 })
    await t.assertNothingReady()
    await t.append('c', { quiet: 1_000, maxEvents: 3 })
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c'])
  })

  rule('L3 maxEvents counts waiting events, not running ones', async (t) => {
    await t.appendEach(['a', 'b'], { quiet: 1_000, maxEvents: 2 })
    const run = await t.claimOne()
    await t.append('c', { quiet: 1_000, maxEvents: 2 })
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOneAfter(1_000)), ['c'])
  })

  rule('L3 the event that reaches maxBytes makes the window end now', async (t) => {
    const words = { quiet: 1_000, maxBytes: 300, body: 'x'.repeat(100) }
    await t.appendEach(['a', 'b'], words)
    await t.assertNothingReady()
    await t.append('c', words)
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c'])
  })

  rule('L3 bytes are bytes, not characters', async (t) => {
    const words = { quiet: 1_000, maxBytes: 8 }
    await t.append('a', { ...words, body: '👍' })
    await t.assertNothingReady()
    await t.append('b', { ...words, body: '👎' })
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
  })

  rule('L3 jitter scales quiet within its bounds, and differs between lanes', async (t) => {
    const start = t.clock.now()
    const waits: number[] = []
    for (let n = 0; n < 40; n++) {
      await t.append(`e${n}`, { key: `k${n}`, quiet: 1_000, jitter: 0.2 })
      waits.push(((await t.getLane(`k${n}`))?.due ?? 0) - start)
    }
    for (const wait of waits) assert.ok(wait >= 800 && wait <= 1_200, `${wait} is within a fifth of 1,000`)
    assert.ok(Math.max(...waits) - Math.min(...waits) > 100, 'forty lanes do not wake together')
    t.clock.advance(1_200)
    assert.equal((await t.claim()).length, 40)
  })

  rule('L3 jitter does not scale max', async (t) => {
    for (let n = 0; n < 10; n++) await t.append(`e${n}`, { key: `k${n}`, quiet: 1_000, max: 500, jitter: 0.3 })
    t.clock.advance(499)
    await t.assertNothingReady()
    t.clock.advance(1)
    assert.equal((await t.claim()).length, 10)
  })

  rule('L3 a repeated append gives the same deadline in spite of jitter', async (t) => {
    await t.append('a', { quiet: 1_000, jitter: 0.5 })
    const due = (await t.getLane('k'))?.due
    t.clock.advance(10)
    await t.append('a', { quiet: 1_000, jitter: 0.5 })
    assert.equal((await t.getLane('k'))?.due, due)
  })

  rule('L3 a deadline further away than 31 bits of milliseconds is kept to the millisecond', async (t) => {
    await t.append('a', { quiet: 400 * DAY, max: 4_000 * DAY })
    assert.deepEqual(t.names(await t.claimOneAfter(400 * DAY)), ['a'])
  })

  rule('L3 an endless window waits until another event or an operator ends it', async (t) => {
    await t.append('a', { quiet: NEVER, max: NEVER })
    t.clock.advance(4_000 * DAY)
    await t.assertNothingReady()
    await t.append('b', { quiet: 10, max: NEVER })
    assert.deepEqual(t.names(await t.claimOneAfter(10)), ['a', 'b'])
  })

  rule('L3 a fraction of a millisecond is rounded up, never early', async (t) => {
    await t.append('a', { quiet: 10.25 })
    assert.deepEqual(t.names(await t.claimOneAfter(11)), ['a'])
  })

  rule('L3 windows of different events in one lane are one batch', async (t) => {
    await t.append('a', { quiet: 1_000 })
    await t.append('b')
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
  })

  rule('L3 beyond maxLanesPerTenant, maintenance makes the oldest window due', async (t) => {
    for (const key of ['x', 'y', 'z']) {
      await t.append(key, { key, tenant: 'acme', every: 60_000 })
      t.clock.advance(10)
    }
    await t.append('other', { key: 'other', tenant: 'globex', every: 60_000 })
    await t.maintain({ lanesPerTenant: { flow: 3 } })
    await t.assertNothingReady()
    await t.maintain({ lanesPerTenant: { flow: 2 } })
    assert.deepEqual(getKeys(await t.claim()), ['x'])
  })

  rule('L3 maxBytes counts waiting events, not those that run, have run or were passed over', async (t) => {
    const words = { quiet: 1_000, maxBytes: 300, body: 'x'.repeat(100) }
    await t.appendEach(['a', 'b', 'c'], words)
    const run = await t.claimOne({ take: 'last' })
    await t.appendEach(['d', 'e'], words)
    await t.settleOk(run)
    await t.assertNothingReady()
    await t.append('f', words)
    assert.deepEqual(t.names(await t.claimOne()), ['d', 'e', 'f'])
  })

  rule('L3 maxBytes does not count dropped or purged events', async (t) => {
    const words = { quiet: 1_000, maxBytes: 300, body: 'x'.repeat(100) }
    await t.append('running', { body: 'x' })
    const run = await t.claimOne()
    await t.appendEach(['a', 'b'], words)
    await t.steer('k', 'drop')
    await t.appendEach(['c', 'd'], words)
    await t.store.purge({ what: { kind: 'event', id: t.id('c') }, n: 10 })
    await t.append('e', words)
    await t.settleOk(run)
    await t.assertNothingReady()
    await t.append('f', words)
    assert.deepEqual(t.names(await t.claimOne()), ['d', 'e', 'f'])
  })

  rule('L3 an event that arrived during a run is bounded by its own max after it as well', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 100, max: 250 })
    t.clock.advance(90)
    await t.settleOk(run)
    for (const name of ['c', 'd']) {
      await t.append(name, { quiet: 100, max: 1_000 })
      t.clock.advance(75)
      await t.assertNothingReady()
    }
    assert.deepEqual(t.names(await t.claimOneAfter(10)), ['b', 'c', 'd'])
  })

  rule('L3 a purged event takes its own max with it at most, not that of its neighbours', async (t) => {
    await t.append('a', { quiet: 100, max: 250 })
    await t.append('b', { quiet: 100, max: 1_000 })
    await t.store.purge({ what: { kind: 'event', id: t.id('b') }, n: 10 })
    for (const name of ['c', 'd', 'e']) {
      t.clock.advance(80)
      await t.append(name, { quiet: 100, max: 1_000 })
    }
    assert.deepEqual(t.names(await t.claimOneAfter(10)), ['a', 'c', 'd', 'e'])
  })

  rule('L3 maxLanesPerTenant counts the waiting lanes of the flow; the oldest windows go first', async (t) => {
    for (const key of ['w', 'x', 'y', 'z']) {
      await t.append(key, { key, tenant: 'acme', every: 60_000 })
      await t.append(`${key} elsewhere`, { key, flow: 'mail', tenant: 'acme', every: 60_000 })
      t.clock.advance(10)
    }
    await t.append('running', { key: 'running', tenant: 'acme' })
    await t.claimOne()
    await t.maintain({ lanesPerTenant: { flow: 4 } })
    await t.assertNothingReady()
    await t.maintain({ lanesPerTenant: { flow: 2 } })
    assert.deepEqual(getKeys(await t.claim()), ['w', 'x'])
    await t.assertNothingReady({ flow: 'mail' })
  })

  for (const [busy, end] of [
    ['that run', undefined],
    ['that wait for their next attempt', retry(90_000)],
    ['that asked to run again', snoozed(90_000)],
  ] as const) {
    for (const age of ['older', 'younger'] as const) {
      rule(`L3 lanes ${busy} use up none of the windows that go: they are ${age} than the open ones`, async (t) => {
        const waiting = { tenant: 'acme', every: 60_000 }
        const keepBusy = async (): Promise<void> => {
          for (const key of ['r1', 'r2', 'r3']) await t.append(key, { key, tenant: 'acme' })
          const runs = await t.claim({ lease: 90_000 })
          if (end !== undefined) for (const run of runs) await t.settleOk(run, end)
          for (const key of ['r1', 'r2', 'r3']) await t.append(`${key} more`, { key, ...waiting })
        }
        if (age === 'older') await keepBusy()
        for (const key of ['a', 'b', 'c', 'd', 'e']) {
          await t.append(key, { key, ...waiting })
          t.clock.advance(10)
        }
        if (age === 'younger') await keepBusy()
        await t.maintain({ lanesPerTenant: { flow: 2 } })
        assert.deepEqual(getKeys(await t.claim()), ['a', 'b', 'c'])
      })
    }
  }
}
