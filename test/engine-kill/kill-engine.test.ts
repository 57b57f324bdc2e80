// The engine survives `kill -9` at any moment, in the short form; and whoever watches would notice if it did not.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { mustSee } from '../must-see.ts'
import { livesAndDeaths, type LivesOptions, type LivesReport } from './lives.ts'
import { linesOf, type Line } from './load.ts'

/** Enough to see that a fault is seen. */
const SHORT = 250

const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-engine-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function lives(options: Omit<LivesOptions, 'folder' | 'compiled' | 'seed'>): Promise<LivesReport> {
  const places = { folder: mkdtempSync(join(folder, 'f-')), compiled: join(folder, 'compiled') }
  return livesAndDeaths({ ...places, ...options, seed: 20_261_115 })
}

type Meddled = LivesReport & { readonly planted: boolean }

/** Changes the file behind the engine's back, once, as soon as there is something to change. */
async function meddled(cycles: number, sql: string): Promise<Meddled> {
  let changed = 0
  const meddle = (file: string): void => {
    if (changed > 0) return
    const db = new DatabaseSync(file)
    changed += Number(db.prepare(sql).run().changes)
    db.close()
  }
  const report = await lives({ cycles, latest: SHORT, meddle })
  return { ...report, planted: changed > 0 }
}

/** Changes what one life has written, the first in which there is something to change. */
async function forged(forge: (lines: readonly Line[]) => readonly Line[] | undefined): Promise<Meddled> {
  let changed = false
  const meddle = (_: string, ledger: string): void => {
    const lines = changed ? undefined : forge(linesOf(ledger))
    if (lines === undefined) return
    changed = true
    writeLines(ledger, lines)
  }
  const report = await lives({ cycles: 3, latest: SHORT, meddle })
  return { ...report, planted: changed }
}

function writeLines(ledger: string, lines: readonly Line[]): void {
  writeFileSync(ledger, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

/** As if all but the first life had begun before the one that they followed was killed. */
function tenSecondsEarly(_: string, ledger: string, cycle: number): void {
  if (cycle === 1) return
  const early = linesOf(ledger).map((line) => ('at' in line ? { ...line, at: line.at - 10_000 } : line))
  writeLines(ledger, early)
}

/** The last run of a flow that this life was told to be done. */
function doneIn(lines: readonly Line[], flow: string): string | undefined {
  const runs = new Set(lines.flatMap((line) => (line.kind === 'entered' && line.flow === flow ? [line.run] : [])))
  const told = lines.findLast((line) => line.kind === 'told' && line.name === 'run.done' && runs.has(line.run))
  return told?.kind === 'told' ? told.run : undefined
}

describe('kill -9 of a working process', () => {
  it('30 times: every acknowledged event ran, and no lane had two runs at once', { timeout: 120_000 }, async () => {
    const { counts, complaints } = await lives({ cycles: 30 })
    expect(complaints).toEqual([])
    expect(counts).toMatchObject({ cycles: 30, lost: 0, overlapping: 0, repeatedAfterDone: 0, wrong: 0 })
    // It was not idle.
    expect(counts.acked).toBeGreaterThan(500)
    expect(counts.done).toBeGreaterThan(500)
    expect(counts.published).toBeGreaterThan(100)
    expect(counts.lapsed).toBeGreaterThan(30)
    expect(counts.resumed).toBeGreaterThan(30)
    expect(counts.resent).toBeGreaterThan(10)
    expect(counts.dead).toBeGreaterThan(0)
  })

  it('loses nothing when the next process has the name of the one that was killed', async () => {
    const { complaints } = await lives({ cycles: 4, latest: SHORT, named: true })
    expect(complaints).toEqual([])
  })
})

describe('the checker', { timeout: 120_000 }, () => {
  it('sees a loss when publish is acknowledged before the commit', async () => {
    // A kill has to fall between the acknowledgement and the commit, which takes luck.
    await mustSee(
      () => lives({ cycles: 8, latest: SHORT, fault: 'early-acks' }),
      ({ counts }) => counts.lost > 0,
      9,
    )
  })

  it('sees runs that come back though they were told to be done', async () => {
    await mustSee(
      () => lives({ cycles: 8, latest: SHORT, fault: 'early-dones' }),
      ({ counts }) => counts.repeatedAfterDone > 0,
    )
  })

  it('sees lanes whose events are gone', async () => {
    await mustSee(
      () => meddled(2, 'delete from lanes'),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees the record of a run that is gone', async () => {
    await mustSee(
      () => meddled(2, `delete from runs where kind = 'done'`),
      ({ counts }) => counts.lost > 0,
    )
  })

  it('sees a published event that is gone', async () => {
    const parcel = `select max(seq) from events where cast(body as text) like '%/0"%'`
    await mustSee(
      () => meddled(2, `delete from events where seq = (${parcel})`),
      ({ complaints }) => complaints.join().includes('published'),
    )
  })

  it('sees that a known event is no longer known', async () => {
    await mustSee(
      () => meddled(8, 'update events set identity = null'),
      ({ complaints }) => complaints.join().includes('stored a second time'),
    )
  })

  it('sees two handlers of a lane at once', async () => {
    await mustSee(
      () =>
        forged((lines) => {
          const at = lines.findIndex((line) => line.kind === 'entered')
          const entered = lines[at]
          if (entered?.kind !== 'entered') return undefined
          return lines.toSpliced(at + 1, 0, { ...entered, at: entered.at + 0.001, run: 'forged' })
        }),
      ({ complaints, counts }) => counts.overlapping > 0 && complaints.join().includes('forged began in lane'),
    )
  })

  it('sees a handler that began while the process that had its lane was alive', async () => {
    await mustSee(
      () => lives({ cycles: 3, latest: SHORT, meddle: tenSecondsEarly }),
      ({ counts }) => counts.overlapping > 0,
    )
  })

  it('sees a run that is recorded as done and that no handler has handled', async () => {
    await mustSee(
      () =>
        forged((lines) => {
          const run = doneIn(lines, 'single')
          return run === undefined ? undefined : lines.filter((line) => !('run' in line && line.run === run))
        }),
      ({ complaints }) => complaints.join().includes('no handler of it ended well'),
    )
  })

  it('sees that the end of an attempt was forgotten', async () => {
    await mustSee(
      () =>
        forged((lines) => {
          const run = doneIn(lines, 'steps')
          if (run === undefined) return undefined
          return lines.map((line) => (line.kind === 'entered' && line.run === run ? { ...line, step: 0 } : line))
        }),
      ({ complaints }) => complaints.join().includes('the end of an attempt'),
    )
  })
})
