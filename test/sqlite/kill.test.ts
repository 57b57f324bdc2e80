// R1 in its short form, and first of all: that whoever watches would notice a loss.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { mustSee } from '../must-see.ts'
import { killCycles, type KillOptions, type KillReport } from './kill-cycles.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function cycles(options: Omit<KillOptions, 'folder' | 'seed'>): Promise<KillReport> {
  return killCycles({ ...options, folder: mkdtempSync(join(folder, 'f-')), seed: 20_261_115 })
}

type Meddled = KillReport & { readonly planted: boolean }

/** Changes the file behind the store's back, once, as soon as there is something to change; or after every cycle. */
async function meddled(count: number, sql: string, often: 'once' | 'always' = 'once'): Promise<Meddled> {
  let changed = 0
  const between = (file: string, cycle: number): void => {
    if (cycle < 3 || (changed > 0 && often === 'once')) return
    const db = new DatabaseSync(file)
    changed += Number(db.prepare(sql).run().changes)
    db.close()
  }
  const report = await cycles({ cycles: count, between })
  return { ...report, planted: changed > 0 }
}

describe('kill -9', () => {
  it('50 cycles of an appending and settling process lose nothing acknowledged', { timeout: 120_000 }, async () => {
    const { counts, complaints } = await cycles({ cycles: 50 })
    expect(complaints).toEqual([])
    expect(counts).toMatchObject({ cycles: 50, lost: 0, repeatedAfterDone: 0, wrong: 0 })
    // It was not idle.
    expect(counts.ackedAppends).toBeGreaterThan(500)
    expect(counts.ackedSettlements).toBeGreaterThan(500)
    expect(counts.unknownAbsent + counts.unknownPresent).toBeGreaterThan(50)
    expect(counts.sentAgain).toBeGreaterThan(10)
  })
})

describe('the checker', { timeout: 120_000 }, () => {
  it('sees a loss when acknowledgements come before the commit', async () => {
    await mustSee(
      () => cycles({ cycles: 8, fault: 'early-appends' }),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees settlements that were acknowledged before the commit and do not stand', async () => {
    await mustSee(
      () => cycles({ cycles: 8, fault: 'early-settlements' }),
      ({ counts }) => counts.lost > 0 && counts.repeatedAfterDone > 0,
    )
  })

  it('sees a finished event that is gone', async () => {
    const first = 'select min(event) from (select cast(events as integer) as event from runs)'
    await mustSee(
      () => meddled(15, `delete from events where seq = (${first})`),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees lanes whose events are gone', async () => {
    await mustSee(
      () => meddled(15, 'delete from lanes'),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees the record of a run that is gone', async () => {
    await mustSee(
      () => meddled(15, `delete from runs where kind = 'done'`),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees a run that its lane would not be found to have had', async () => {
    await mustSee(
      () => meddled(15, `update meta set value = 1000000000 where name = 'listed'`),
      ({ complaints }) => complaints.join().includes('in no list of their lanes'),
    )
  })

  it('sees an event that waits again after it was done', async () => {
    const again = `insert into places (lane, rank, pos, list)
      select (select min(row) from lanes), 0, 1000000000, '1000000000,' || cast(events as integer) || ',0' from runs where kind = 'done' limit 1`
    await mustSee(
      () => meddled(15, again),
      ({ counts }) => counts.wrong + counts.repeatedAfterDone > 0,
    )
  })

  it('sees that a run which had begun is forgotten', async () => {
    // Most runs on the list have ended when the process dies: one that has not takes a few cycles.
    const forget = `update meta set value = '' where name = 'begun' and value <> ''`
    await mustSee(
      () => meddled(20, forget, 'always'),
      ({ complaints }) => complaints.join().includes('which had begun'),
    )
  })

  it('sees that lanes which were pushed back are forgotten', async () => {
    await mustSee(
      () => meddled(40, 'delete from pushed_back', 'always'),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees tokens that were given out before', async () => {
    await mustSee(
      () => meddled(6, `update meta set value = 0 where name = 'counter'`),
      ({ complaints }) => complaints.join().includes('was given out twice'),
    )
  })

  it('sees that a known event is no longer known', async () => {
    await mustSee(
      () => meddled(12, 'update events set identity = null'),
      ({ counts }) => counts.lost > 0,
    )
  })
})
