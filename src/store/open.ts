// `openStore` opens a store by its address. It loads only the driver that the address needs.
import type { Clock } from '../clock.ts'
import { isServerAddress, POSTGRES, schemaOf, unknownAddress } from './address.ts'
import type { Store } from './contract/index.ts'

export interface OpenStoreOptions {
  readonly clock?: Clock
  /** SQLite: opens the file for reading while another process works on it. */
  readonly readOnly?: boolean
  /** SQLite: the maximum size of the file. */
  readonly maxBytes?: number
  /** PostgreSQL: the maximum number of connections of this process. */
  readonly connections?: number
  /** PostgreSQL: accepts a server that may lose acknowledged writes in a crash. Without this option, such a server is rejected. */
  readonly acceptLoss?: boolean
}

/** `openStore` opens `memory:`, `sqlite:<file>` or `postgres://…`. */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  if (address === 'memory:') return (await import('./memory/store.ts')).openMemoryStore(options)
  const file = address.startsWith('sqlite:') ? address.slice('sqlite:'.length) : ''
  if (file !== '' && !isServerAddress(file))
    return (await import('./sqlite/store.ts')).openSqliteStore({ ...options, file })
  const schema = parseSchema(address)
  if (schema !== undefined) {
    const { clock, connections, acceptLoss = false } = options
    const { openPostgresStore } = await import('./postgres/store.ts')
    const size = connections === undefined ? {} : { connections }
    // Deadlines use the server's clock, except under the virtual clock of a test.
    return openPostgresStore({ url: address, schema, acceptLoss, ...size, ...(clock?.isVirtual === true && { clock }) })
  }
  throw unknownAddress(address)
}

const DEFAULT_SCHEMA = 'sluice'

/** Returns the schema of a server address: `?schema=`, or the default. */
function parseSchema(address: string): string | undefined {
  return POSTGRES.test(address) ? (schemaOf(address) ?? DEFAULT_SCHEMA) : undefined
}

/** `getOutboxSchema` returns the schema whose `publish` function a user's transaction can call; undefined if the store has none. */
export function getOutboxSchema(store: string | Store): string | undefined {
  if (typeof store === 'string') return parseSchema(store)
  return 'outbox' in store && typeof store.outbox === 'string' ? store.outbox : undefined
}
