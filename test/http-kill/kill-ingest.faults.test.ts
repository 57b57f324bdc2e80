// R2 under `kill -9`, in its short form: every webhook that got a 2xx is in the store.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { kills, type KillsOptions, type KillsReport } from './kills.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-ingest-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function killed(options: Omit<KillsOptions, 'folder' | 'compiled' | 'seed'>): Promise<KillsReport> {
  const places = { folder: mkdtempSync(join(folder, 'f-')), compiled: join(folder, 'compiled') }
  return kills({ ...places, ...options, seed: 20_261_115 })
}

/** Changes the file behind the store's back. */
function meddled(sql: string): Promise<KillsReport> {
  return killed({
    cycles: 2,
    meddle: (file) => {
      const db = new DatabaseSync(file)
      expect(db.prepare(sql).run().changes).toBeGreaterThan(0)
      db.close()
    },
  })
}

describe('kill -9 of a server under 64 connections', () => {
  it('after 20 kills, every webhook that got a 2xx is stored once, as it was sent', { timeout: 120_000 }, async () => {
    const { counts, complaints } = await killed({ cycles: 20 })
    expect(complaints).toEqual([])
    expect(counts).toMatchObject({ cycles: 20, lost: 0, twice: 0, wrong: 0 })
    // Otherwise the servers would have died while idle.
    expect(counts.acked).toBeGreaterThan(300)
    expect(counts.unanswered).toBeGreaterThan(100)
    expect(counts.resent).toBeGreaterThan(5)
  })
})

describe('the checker', () => {
  it('detects a webhook that got its response before it was stored', async () => {
    const { counts } = await killed({ cycles: 1, fault: 'early-answer' })
    expect(counts.acked).toBeGreaterThan(0)
    expect(counts.lost).toBe(counts.acked)
  })

  it('detects a missing event', async () => {
    const { counts } = await meddled('delete from events where seq % 2 = 0')
    expect(counts.lost).toBeGreaterThan(0)
    expect(counts.lost).toBeLessThan(counts.acked)
  })

  it('detects a stored event with other bytes than were sent', async () => {
    const { complaints } = await meddled(
      `update events set body = cast(replace(cast(body as text), '"filler":', '"Filler":') as blob)`,
    )
    expect(complaints.join()).toContain('other bytes')
  })
})
