// The SQLite store passes the whole conformance suite on a real file, through restarts and crashes.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { storeConformance, type Harness } from '../conformance/index.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-conformance-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = new Map<Store, string>()
let made = 0
const newFile = (): string => join(folder, `${made++}.db`)

async function open(file: string, clock: Clock): Promise<Store> {
  const store = await openSqliteStore({ file, clock })
  files.set(store, file)
  return store
}

const sqlite = {
  clock: () => new VirtualClock(),
  fresh: async (clock) => open(newFile(), clock),
} satisfies Partial<Harness>

storeConformance(
  { describe, it },
  {
    ...sqlite,
    name: 'sqlite',
    async reopen(store, clock) {
      await store.close()
      return open(files.get(store) ?? '', clock)
    },
  },
)

storeConformance(
  { describe, it },
  {
    ...sqlite,
    name: 'sqlite, after a crash',
    only: ['durability'],
    /** The file and its log at this moment are what a killed process leaves behind. */
    async reopen(store, clock) {
      const [from, to] = [files.get(store) ?? '', newFile()]
      for (const part of ['', '-wal']) if (existsSync(from + part)) copyFileSync(from + part, to + part)
      await store.close()
      return open(to, clock)
    },
  },
)
