// What grows with the file: the log is written back beside the work, and identities are known when memory is long full.
import { existsSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const MB = 1_048_576

describe('the log', () => {
  it('is written back by its own thread before this one would have to, and is put away on closing', async () => {
    const file = freshFile()
    const store = await open(file)
    const body = 'x'.repeat(MB)
    let most = 0
    for (let n = 0; n < 240; n++) {
      await send(store, event(`e${n}`, { body, quiet: 60_000 }))
      most = Math.max(most, statSync(`${file}-wal`).size)
    }
    // Begun anew at least twice. This thread alone would let it grow to 256 MB.
    expect(most / MB).toBeGreaterThan(60)
    expect(most / MB).toBeLessThan(160)
    await store.close()
    expect(existsSync(`${file}-wal`)).toBe(false)
    expect(connect(file).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    const again = await open(file)
    expect((await again.stats()).flows.map(({ lanes }) => lanes)).toEqual([240])
  })
})

describe('L10 identities', () => {
  it('50,000 of them, more than memory keeps: each is known, before and after a restart', async () => {
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
