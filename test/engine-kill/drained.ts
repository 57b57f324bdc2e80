// The last life runs until nothing is left, and reports that.
import { setTimeout } from 'node:timers/promises'
import type { Sluice } from '../../src/index.ts'
import type { Line } from './load.ts'

const STUCK_AFTER_MS = 60_000

/** Resolves when nothing is left to do, or when nothing has happened for a long time. */
export async function drained(app: Sluice, tell: (line: Line) => void): Promise<void> {
  for (;;) {
    const heard = new AbortController()
    const off = app.onAny((name) => {
      if (name.startsWith('run.')) heard.abort()
    })
    const { items, next } = await app.admin.lanes.list()
    if (items.length === 0 && next === undefined) return tell({ kind: 'drained' })
    const still = await setTimeout(STUCK_AFTER_MS, true, { signal: heard.signal }).catch(() => false)
    off()
    if (still) return tell({ kind: 'stuck', lanes: items.map((lane) => `${lane.flow} ${lane.key}`) })
  }
}
