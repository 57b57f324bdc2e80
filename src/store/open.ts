// A store by its address. Drivers that are not used are not loaded.
import type { Clock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Store } from './contract/index.ts'

export interface OpenOptions {
  readonly clock?: Clock
  readonly readOnly?: boolean
  readonly maxBytes?: number
}

/** `memory:`, or `sqlite:<file>`. */
export async function openStore(address: string, options: OpenOptions = {}): Promise<Store> {
  if (address === 'memory:') return (await import('./memory/store.ts')).openMemoryStore(options)
  const file = address.startsWith('sqlite:') ? address.slice('sqlite:'.length) : ''
  if (file !== '') return (await import('./sqlite/store.ts')).openSqliteStore({ ...options, file })
  throw new SluiceError('STORE_UNKNOWN', `${JSON.stringify(address)} is no address of a store.`)
}
