// Tests calls that need no rules: the server decides each of them in one statement. If it gives one up, nothing is written, and the
// rules decide.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import { createClaimRequest, done, createEventToStore } from '../conformance/builders.ts'
import type { AppendReply, LeasedRun, EventToStore, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

const SETTLED = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const

/** The statements that are sent to the server. */
const sent: string[] = []
// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const { query } = pg.Client.prototype
let opened = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let schema: string
  let ours: Store
  let theirs: Store
  let request = 0

  beforeEach(async () => {
    schema = `plain_${process.pid}_${opened++}`
    const open = (): Promise<Store> => openPostgresStore({ url, schema, connections: 3, acceptLoss: true })
    ours = await open()
    theirs = await open()
    pg.Client.prototype.query = function (this: pg.Client, ...given: readonly unknown[]) {
      const [config] = given as readonly [string | { readonly text: string }]
      sent.push(typeof config === 'string' ? config : config.text)
      return (query as (...all: unknown[]) => unknown).apply(this, [...given])
    } as typeof query
  })

  afterEach(async () => {
    pg.Client.prototype.query = query
    await Promise.all([ours.close(), theirs.close()])
  })

  async function runs(by: Store, settle: readonly LeasedRun[] = []): Promise<readonly LeasedRun[]> {
    const reply = await by.settleAndClaim({
      process: by === ours ? 'ours' : 'theirs',
      request: ++request,
      routes: 1,
      settle: settle.map(({ lane, token }) => ({ ...SETTLED, lane, token })),
      claim: [createClaimRequest()],
      budget: 64_000_000,
    })
    expect(reply.settled).toEqual(settle.map(() => 'ok'))
    return reply.claimed
  }

  it('an append of new events, and a turn of plain runs, are one statement each', async () => {
    // A process that the store does not know yet is for the rules.
    await runs(ours)
    expect(await statementsOf(() => send(ours, ['first'], 'k'))).toEqual([
      expect.stringMatching(/^select \* from append_/),
    ])
    expect(await statementsOf(() => send(ours, ['second'], 'k'))).toEqual([
      expect.stringMatching(/^select \* from append_/),
    ])
    const turn = expect.stringMatching(/^select \* from settle_and_claim_/) as string
    let claimed: readonly LeasedRun[] = []
    expect(await statementsOf(async () => (claimed = await runs(ours)))).toEqual([turn])
    expect(namesIn(claimed)).toEqual(['first', 'second'])
    await send(ours, ['third'], 'k')
    expect(await statementsOf(async () => (claimed = await runs(ours, claimed)))).toEqual([turn])
    expect(namesIn(claimed)).toEqual(['third'])
    expect(await statementsOf(async () => (claimed = await runs(ours, claimed)))).toEqual([turn])
    expect(claimed).toEqual([])
    expect((await ours.find({ kind: 'lanes', filter: {}, cursor: '', n: 10 })).items).toEqual([])
  })

  it('a run that the rules have claimed is settled without them', async () => {
    await send(ours, ['first'], 'k')
    const claimed = await runs(ours)
    const statements = await statementsOf(() => runs(ours, claimed))
    expect(statements).toEqual([expect.stringMatching(/^select \* from settle_and_claim_/)])
  })

  it('a lane that is not plain is for the rules, which see what the server decided before', async () => {
    await runs(ours)
    await send(ours, ['first'], 'k')
    const claimed = await runs(ours)
    await send(ours, ['second'], 'k')
    const { lane, token, runId } = claimed[0] as LeasedRun
    const retry = { lane, token, ...SETTLED, outcome: { kind: 'retry', after: 0 } } as const
    const turn = { process: 'ours', routes: 1, budget: 64_000_000, claim: [createClaimRequest()] }
    const again = await ours.settleAndClaim({ ...turn, request: ++request, settle: [retry] })
    expect(again).toMatchObject({ settled: ['ok'], claimed: [{ runId, tries: 1, events: [{}] }] })
    // An event that joins a lane with such a run needs no rules.
    expect(await statementsOf(() => send(theirs, ['third'], 'k'))).toHaveLength(1)
    expect(namesIn(await runs(ours, again.claimed))).toEqual(['second', 'third'])
  })

  it('of two settlements of one lane the first counts, though the second needs the rules', async () => {
    await send(ours, ['first'], 'k')
    const { lane, token } = (await runs(ours))[0] as LeasedRun
    const retry = { lane, token, ...SETTLED, outcome: { kind: 'retry', after: 0 } } as const
    const settle = [{ lane, token, ...SETTLED }, retry]
    const turn = { process: 'ours', request: ++request, routes: 1, budget: 64_000_000, claim: [], settle }
    expect((await ours.settleAndClaim(turn)).settled).toEqual(['ok', 'lost'])
  })

  it('a held lane gives up the append of the server, not the event', async () => {
    await send(ours, ['first'], 'k')
    const act = { kind: 'hold', reason: 'test', by: 'test', for: 60_000 } as const
    await ours.steer({ what: 'lanes', ids: [laneId('flow', 'k')], act })
    const statements = await statementsOf(async () => expect(await send(ours, ['second'], 'k')).toEqual(['stored']))
    expect(statements[0]).toMatch(/^select \* from append_/)
    expect(statements.at(-1)).toBe('commit')
    const { item } = await theirs.get({ kind: 'lanes', id: laneId('flow', 'k') })
    expect(item).toMatchObject({ waiting: 2, hold: { reason: 'test' } })
  })

  it('after calls that the server gave up, the next ones go to the rules at once', async () => {
    const [known] = [event('known', 'k')]
    await append(ours, [known])
    for (const attempts of [1, 2, 4]) {
      const gaveUp = await statementsOf(() => append(ours, [known]))
      expect(gaveUp[0]).toMatch(/^select \* from append_/)
      for (let n = 0; n < attempts; n++) {
        const statements = await statementsOf(() => append(ours, [known]))
        expect(statements.filter((sql) => sql.includes('append_'))).toEqual([])
      }
    }
  })

  it('two processes that append to one lane in turns store each event once, in the order of arrival', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `event ${n}`)
    for (const [n, name] of names.entries())
      expect(await send(n % 2 === 0 ? ours : theirs, [name], 'k')).toEqual(['stored'])
    expect(namesIn(await runs(theirs))).toEqual(names)
  })

  it('a lane that another process emptied and created again is not mistaken for the old one', async () => {
    await acquaint(ours, 'k')
    const claimed = await runs(theirs)
    expect(await runs(theirs, claimed)).toEqual([])
    await send(theirs, ['new, theirs'], 'k')
    // The new lane has been written as often as the deleted one.
    await send(theirs, ['new again, theirs'], 'k')
    await send(ours, ['new, ours'], 'k')
    expect(namesIn(await runs(ours))).toEqual(['new, theirs', 'new again, theirs', 'new, ours'])
  })

  it('an append does not undo a run that another process has started', async () => {
    await acquaint(ours, 'k')
    const claimed = await runs(theirs)
    await send(ours, ['during the run'], 'k')
    expect(await runs(ours)).toEqual([])
    expect(namesIn(await runs(theirs, claimed))).toEqual(['during the run'])
  })

  it('an event that another process has stored is a duplicate, and the rest of the batch is stored', async () => {
    await acquaint(ours, 'k')
    const same = event('same', 'k')
    expect(await append(theirs, [same])).toEqual(['stored'])
    const again = { ...event('same', 'k'), identity: same.identity }
    expect(await append(ours, [again, event('other', 'k')])).toEqual(['duplicate', 'stored'])
    expect(await append(ours, [same])).toEqual(['repeated'])
  })

  it('an append that cannot be written is not written in part, and the process continues', async () => {
    await acquaint(ours, 'known')
    for (const key of ['known', 'unknown']) {
      const broken = { ...event('broken', key), body: 'no bytes' as unknown as Uint8Array }
      // Lanes are written before events.
      await expect(append(ours, [event('its neighbour', key), broken])).rejects.toMatchObject({
        code: 'STORE_FAILED',
      })
      expect(await send(ours, ['next'], key)).toEqual(['stored'])
      expect(await send(theirs, ['theirs'], key)).toEqual(['stored'])
      const { item } = await theirs.get({ kind: 'lanes', id: laneId('flow', key) })
      expect(item?.waiting).toBe(key === 'known' ? 4 : 2)
    }
    const names = namesIn(await runs(ours)).toSorted()
    expect(names).toEqual(['known first', 'known second', 'next', 'next', 'theirs', 'theirs'])
  })

  it('routes that another process has changed are respected', async () => {
    await acquaint(ours, 'k')
    await theirs.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    expect(await send(ours, ['by old routes'], 'k')).toEqual(['routes-old'])
    expect(namesIn(await runs(ours))).toEqual(['k first', 'k second'])
  })

  it('many simultaneous appends of two processes are all stored, once', async () => {
    await Promise.all([acquaint(ours, 'k'), acquaint(theirs, 'k')])
    const all = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        send(n % 2 === 0 ? ours : theirs, [`${n % 2}/${n}`], n % 3 === 0 ? 'k' : 'l'),
      ),
    )
    expect(new Set(all.flat())).toEqual(new Set(['stored']))
    const names = namesIn(await runs(ours)).filter((name) => name.includes('/'))
    expect(names).toHaveLength(60)
    expect(new Set(names).size).toBe(60)
  })
})

/** The statements of one round trip. */
async function statementsOf(act: () => Promise<unknown>): Promise<readonly string[]> {
  sent.length = 0
  await act()
  // The store looks for old snapshots every five seconds.
  return sent.filter((sql) => !sql.includes('pg_stat_activity')).map((sql) => sql.trim().replaceAll(/\s+/g, ' '))
}

async function acquaint(by: Store, key: string): Promise<void> {
  await send(by, [`${key} first`], key)
  await send(by, [`${key} second`], key)
}

async function send(by: Store, names: readonly string[], key: string): Promise<readonly string[]> {
  return append(
    by,
    names.map((name) => event(name, key)),
  )
}

function event(name: string, key: string): EventToStore {
  return createEventToStore(name, { key }, systemClock.now())
}

async function append(by: Store, events: readonly EventToStore[]): Promise<readonly string[]> {
  const { results }: AppendReply = await by.append({ routes: 1, events })
  return results.map(({ kind }) => kind)
}

function namesIn(claimed: readonly LeasedRun[]): readonly string[] {
  return claimed.flatMap(({ events }) => events.map(({ body }) => textOf(body)))
}

function textOf(body: Uint8Array | undefined): string {
  return Buffer.from(body ?? []).toString()
}
