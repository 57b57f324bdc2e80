// Growing files: the log is written back in parallel, and identities are known beyond the capacity of the memory.
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/store/contract/index.ts'
import { Checkpointer } from '../../src/store/sqlite/write-ahead-log.ts'
import type { EventOverrides } from '../conformance/builders.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const MB = 1_048_576
/** More than the thread allows the log to grow to. */
const LOG_MB = 80

describe('the log', () => {
  it('is written back by its own thread before the main thread would have to, and is removed on close', async () => {
    const file = freshFile()
    const store = await open(file)
    const body = 'x'.repeat(MB)
    const ids: string[] = []
    const append = async (words: EventOverrides): Promise<void> => {
      ids.push(`e${ids.length}`)
      await send(store, event(ids.at(-1) ?? '', { quiet: 60_000, ...words }))
    }
    await append({})
    const first = generationOf(file)
    for (let n = 0; n < LOG_MB; n++) await append({ body })
    // After everything is in the file, a commit restarts the log. The main thread would write it back only at 256 MB.
    const next = async (): Promise<string> => {
      await append({})
      return generationOf(file)
    }
    await expect.poll(next).not.toBe(first)
    await store.close()
    expect(existsSync(`${file}-wal`)).toBe(false)
    expect(connect(file).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    const again = await open(file)
    expect((await again.stats()).flows.map(({ lanes }) => lanes)).toEqual([ids.length])
  })
})

describe('a log on a small disk', () => {
  it('never needs more space than is free to be written back, though its thread gets no time', async () => {
    const file = freshFile()
    const db = connect(file)
    db.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = off; create table bodies (body)')
    const space = { free: 16 * MB }
    const checkpointer = new Checkpointer(db, file, () => space.free)
    // A closed one starts no thread, so only the main thread writes back.
    await checkpointer.close()
    const lengthAfter = (commits: number): number => {
      let longest = 0
      for (let n = 0; n < commits; n++) {
        db.exec('insert into bodies values (zeroblob(20000))')
        checkpointer.onCommitted()
        longest = Math.max(longest, statSync(`${file}-wal`).size)
      }
      return longest
    }
    expect(lengthAfter(1_000)).toBeLessThan(9 * MB)
    space.free = MB
    lengthAfter(500)
    expect(lengthAfter(100)).toBeLessThan(1.5 * MB)
  })
})

/** The salt in the header of the log, which changes each time the log restarts. */
function generationOf(file: string): string {
  const header = Buffer.alloc(24)
  const log = openSync(`${file}-wal`, 'r')
  readSync(log, header)
  closeSync(log)
  return header.toString('hex', 16)
}

describe('L10 identities', () => {
  it('all of 50,000, more than memory keeps, are recognised, before and after a restart', async () => {
    const file = freshFile()
    const store = await open(file)
    const batches = Array.from({ length: 50 }, (_, batch) =>
      Array.from({ length: 1_000 }, (__, n) => event(`e${batch * 1_000 + n}`, { key: `k${n}`, quiet: 60_000 })),
    )
    for (const batch of batches) await send(store, ...batch)
    const kinds = new Set<string>()
    const resend = async (to: Store, half: 0 | 1): Promise<void> => {
      for (const batch of batches.filter((_, at) => at % 2 === half)) {
        for (const { kind } of await send(to, ...batch)) kinds.add(kind)
      }
    }
    await resend(store, 0)
    await store.close()
    await resend(await open(file), 1)
    expect([...kinds]).toEqual(['repeated'])
  })
})
