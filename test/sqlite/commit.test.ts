// Calls of one moment share one commit. Each returns only after it, and a failing call does not affect the others.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createClaimRequest, done, createRetentionPolicy } from '../conformance/builders.ts'
import type { Settlement, Store, SettleAndClaimCall } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const WAL_HEADER = 32
const FRAME_HEADER = 24

/** The number of commits in the log: frames of its present round that contain the size of the database. */
function commitsIn(file: string): number {
  const wal = readFileSync(`${file}-wal`)
  const frame = FRAME_HEADER + wal.readUInt32BE(8)
  const salts = wal.subarray(16, 24)
  let commits = 0
  for (let at = WAL_HEADER; at + frame <= wal.length; at += frame) {
    if (!wal.subarray(at + 8, at + 16).equals(salts)) break
    if (wal.readUInt32BE(at + 4) !== 0) commits++
  }
  return commits
}

function turn(request: number): SettleAndClaimCall {
  return { process: 'p', request, routes: 1, settle: [], claim: [], budget: 0 }
}

/** Enough for many ranges of identities to be written. */
const MANY = 33_280

const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const

describe('a commit', () => {
  it('is shared by all calls of one moment', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('first'))
    const before = commitsIn(file)
    await Promise.all(Array.from({ length: 100 }, (_, n) => send(store, event(`e${n}`))))
    expect(commitsIn(file) - before).toBe(1)
  })

  it('is one per call when the calls come one after the other', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('first'))
    const before = commitsIn(file)
    for (let n = 0; n < 5; n++) await send(store, event(`e${n}`))
    expect(commitsIn(file) - before).toBe(5)
  })

  it('comes before the reply: after it, another connection finds the event', async () => {
    const file = freshFile()
    const store = await open(file)
    const other = connect(file)
    const seen = other.prepare('select count(*) as n from events where id = ?')
    const check = async (name: string): Promise<number> => {
      const answer = send(store, event(name))
      // So far, the call has stored nothing.
      expect(seen.get(name)).toEqual({ n: 0 })
      return answer.then(() => Number(seen.get(name)?.['n']))
    }
    for (let round = 0; round < 20; round++) {
      const found = await Promise.all(Array.from({ length: 5 }, (_, n) => check(`e${round}-${n}`)))
      expect(found).toEqual([1, 1, 1, 1, 1])
    }
  })

  it('is made for the other calls if one call fails', async () => {
    const file = freshFile()
    const store = await open(file)
    await store.settleAndClaim(turn(5))
    const results = await Promise.allSettled([
      send(store, event('before')),
      store.settleAndClaim(turn(4)),
      send(store, event('after'), event('after too')),
      store.settleAndClaim(turn(6)),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'REQUEST_STALE' } })
    const ids = connect(file).prepare('select id from events order by seq').all()
    expect(ids.map((row) => row['id'])).toEqual(['before', 'after', 'after too'])
  })

  it('is not made for a call that fails: nothing of it remains, and no identity is remembered', async () => {
    const store = await open(freshFile())
    await store.settleAndClaim(turn(5))
    const broken = { ...event('x'), body: 'no bytes' as unknown as Uint8Array }
    const results = await Promise.allSettled([
      send(store, event('y'), broken),
      store.settleAndClaim(turn(4)),
      send(store, event('z')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    expect((await store.get({ kind: 'events', id: 'y' })).item).toBeUndefined()
    expect(await send(store, event('y'), event('x'))).toEqual([{ kind: 'stored' }, { kind: 'stored' }])
  })

  it('that is rolled back leaves nothing to be written later: a failed settlement is not half done', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('good'), event('bad'), event('other'))
    const { claimed } = await store.settleAndClaim({ ...turn(1), claim: [createClaimRequest()] })
    const other = connect(file)
    other.exec(
      `create trigger planted before insert on runs when new.key = 'bad' begin select raise(abort, 'planted'); end`,
    )
    const settle = (...keys: readonly string[]): readonly Settlement[] =>
      claimed.filter(({ key }) => keys.includes(key)).map(({ lane, token }) => ({ ...END, lane, token }))
    const results = await Promise.allSettled([
      send(store, event('before')),
      store.settleAndClaim({ ...turn(2), settle: settle('good', 'bad') }),
      store.settleAndClaim({ ...turn(1), process: 'q', settle: settle('other') }),
      send(store, event('after')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'STORE_FAILED' } })
    expect(other.prepare('select key from runs').all()).toEqual([{ key: 'other' }])
    const running = (await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 9 })).items.filter((lane) => lane.run)
    expect(running.map(({ key }) => key).toSorted()).toEqual(['bad', 'good'])

    other.exec('drop trigger planted')
    expect((await store.settleAndClaim({ ...turn(2), settle: settle('good', 'bad') })).settled).toEqual(['ok', 'ok'])
    expect(await send(store, event('before'))).toEqual([{ kind: 'repeated' }])
  })

  it('that is rolled back leaves no identity in memory, however many came with it', async () => {
    const store = await open(freshFile())
    const many = Array.from({ length: MANY }, (_, n) => event(`e${n}`, { key: 'one lane' }))
    const broken = { ...event('x'), body: 'no bytes' as unknown as Uint8Array }
    await expect(send(store, ...many, broken)).rejects.toMatchObject({ code: 'STORE_FAILED' })
    const answers = new Set((await send(store, ...many)).map(({ kind }) => kind))
    expect([...answers]).toEqual(['stored'])
  })

  it('rejects a value that no row can hold, and only its own call', async () => {
    const file = freshFile()
    const store = await open(file)
    await send(store, event('a'), event('b'))
    const { claimed } = await store.settleAndClaim({ ...turn(1), claim: [createClaimRequest()] })
    const [a, b] = claimed.map(({ lane, token }) => ({ ...END, lane, token }))
    if (a === undefined || b === undefined) throw new TypeError('both were claimed')
    const noReason = { ...a, outcome: { kind: 'dropped', reason: undefined as unknown as string } } as const
    const results = await Promise.allSettled([
      store.settleAndClaim({ ...turn(2), settle: [noReason] }),
      store.settleAndClaim({ ...turn(1), process: 'q', settle: [b] }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(connect(file).prepare('select key from runs').all()).toEqual([{ key: 'b' }])
    expect((await store.settleAndClaim({ ...turn(2), settle: [a] })).settled).toEqual(['ok'])
  })
})

describe('close', () => {
  it('waits for earlier calls, and their data is stored', async () => {
    const file = freshFile()
    const store = await open(file)
    const answers = [send(store, event('a')), send(store, event('b'))]
    await store.close()
    expect((await Promise.all(answers)).flat()).toEqual([{ kind: 'stored' }, { kind: 'stored' }])
    expect((await (await open(file)).get({ kind: 'events', id: 'b' })).item?.id).toBe('b')
  })

  it('may be called twice', async () => {
    const store = await open(freshFile())
    await store.close()
    await expect(store.close()).resolves.toBeUndefined()
  })

  const calls: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    append: (store) => store.append({ routes: 1, events: [event('a')] }),
    unrouted: (store) => store.claimUnrouted({ n: 1, lease: 1, reasons: [], flows: [] }),
    place: (store) => store.place({ routes: 1, items: [] }),
    turn: (store) => store.settleAndClaim(turn(1)),
    renew: (store) => store.renew({ lease: 1, runs: [] }),
    permits: (store) => store.leasePermits({ process: 'p', lease: 1, requests: [] }),
    steer: (store) => store.steer({ what: 'flows', ids: [], act: { kind: 'resume' } }),
    purge: (store) => store.purge({ what: { kind: 'event', id: 'a' }, n: 1 }),
    reserve: (store) => store.reserve({ requests: [] }),
    regulate: (store) => store.regulate({ name: 'l', act: { kind: 'resume' } }),
    pressure: (store) => store.updatePressure({ flows: [] }),
    maintain: (store) => store.maintain({ budget: 1, policy: createRetentionPolicy() }),
    readDocs: (store) => store.readDocs({ kind: 'd', ids: undefined, after: '', n: 1 }),
    writeDocs: (store) => store.writeDocs({ writes: [], raiseRoutes: false, audit: undefined }),
    find: (store) => store.find({ kind: 'events', filter: {}, cursor: '', n: 1 }),
    get: (store) => store.get({ kind: 'events', id: 'a' }),
    count: (store) => store.count({ kind: 'events', filter: {}, cursor: '', atMost: 1 }),
    stats: (store) => store.stats(),
    bodies: (store) => store.readBodies({ events: [] }),
    feed: (store) => store.readFeed({ after: 0, n: 1 }),
  }

  it.each(Object.keys(calls))('%s afterwards is rejected with STORE_CLOSED', async (name) => {
    const store = await open(freshFile())
    await store.close()
    await expect(calls[name]?.(store)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})
