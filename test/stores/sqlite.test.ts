// The default store keeps the whole contract, on a real file, through restarts.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { storeConformance } from '../../src/store/conformance/index.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-conformance-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = new Map<Store, string>()

storeConformance(
  { describe, it },
  {
    name: 'sqlite',
    clock: () => new VirtualClock(),
    async fresh(clock) {
      const file = join(folder, `${files.size}.db`)
      const store = await openSqliteStore({ file, clock })
      files.set(store, file)
      return store
    },
    async reopen(store, clock) {
      const file = files.get(store) ?? ''
      await store.close()
      const again = await openSqliteStore({ file, clock })
      files.set(again, file)
      return again
    },
  },
)
