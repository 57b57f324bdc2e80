// How the simulation opens each store, and opens it again after a crash where there is something to open.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import type { Opened, Simulation } from './simulate.ts'
import type { VirtualClock } from './virtual-clock.ts'

export const STORES = ['memory', 'sqlite'] as const
export type StoreName = (typeof STORES)[number]

async function memory(clock: VirtualClock): Promise<Opened> {
  return { store: openMemoryStore({ clock }) }
}

async function sqlite(clock: VirtualClock): Promise<Opened> {
  const { openSqliteStore } = await import('../../src/store/sqlite/store.ts')
  const folder = await mkdtemp(join(tmpdir(), 'sluice-simulation-'))
  const open = async (): Promise<Opened['store']> => openSqliteStore({ file: join(folder, 'store.db'), clock })
  let store = await open()
  return {
    store,
    async reopen() {
      await store.close()
      store = await open()
      return store
    },
    dispose: () => rm(folder, { recursive: true, force: true }),
  }
}

export function opener(name: StoreName): Simulation['open'] {
  return name === 'memory' ? memory : sqlite
}
