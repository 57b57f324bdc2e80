// How the simulation opens each store, and opens it again after a crash if it has data on disk.
import { existsSync, rmSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Opened, Simulation } from './simulate.ts'
import type { VirtualClock } from './virtual-clock.ts'

export const STORES = ['memory', 'sqlite'] as const
export type StoreName = (typeof STORES)[number]

async function memory(clock: VirtualClock): Promise<Opened> {
  return { store: openMemoryStore({ clock }) }
}

// Thousands of short-lived files: in memory, if the system has a file system there.
const place = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
let template: Promise<string> | undefined

/** An empty store to copy: creating one for each history would be half of the work. */
async function emptyStore(): Promise<string> {
  const folder = await mkdtemp(join(place, 'sluice-template-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'store.db')
  await (await openSqliteStore({ file })).close()
  return file
}

async function sqlite(clock: VirtualClock): Promise<Opened> {
  template ??= emptyStore()
  const folder = await mkdtemp(join(place, 'sluice-simulation-'))
  const file = join(folder, 'store.db')
  await copyFile(await template, file)
  const open = (): Promise<Opened['store']> => openSqliteStore({ file, clock })
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
