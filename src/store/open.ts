// A store by its address. Drivers that are not used are not loaded.
import type { Clock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Store } from './contract/index.ts'

export interface OpenOptions {
  readonly clock?: Clock
  /** SQLite: reads while another process works on the file. */
  readonly readOnly?: boolean
  /** SQLite: the most the file may grow to. */
  readonly maxBytes?: number
  /** PostgreSQL: the most connections of this process. */
  readonly connections?: number
  /** PostgreSQL: a server that may forget what it has said yes to is refused, unless this says that it may. */
  readonly acceptLoss?: boolean
}

/** `memory:`, `sqlite:<file>`, or `postgres://…`. */
export async function openStore(address: string, options: OpenOptions = {}): Promise<Store> {
  if (address === 'memory:') return (await import('./memory/store.ts')).openMemoryStore(options)
  const file = address.startsWith('sqlite:') ? address.slice('sqlite:'.length) : ''
  if (file !== '') return (await import('./sqlite/store.ts')).openSqliteStore({ ...options, file })
  const schema = schemaIn(address)
  if (schema !== undefined) {
    const { clock, connections, acceptLoss = false } = options
    const { openPostgresStore } = await import('./postgres/store.ts')
    const size = connections === undefined ? {} : { connections }
    // Deadlines go by the server's clock, but for those of a test.
    return openPostgresStore({ url: address, schema, acceptLoss, ...size, ...(clock?.isVirtual === true && { clock }) })
  }
  throw new SluiceError('STORE_UNKNOWN', `${JSON.stringify(address)} is no address of a store.`)
}

const SCHEMA = 'sluice'

/** Of a server: `?schema=` where it is not the usual one. */
function schemaIn(address: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(address)) return undefined
  const named = /[?&]schema=([^&]+)/.exec(address)?.[1]
  return named === undefined ? SCHEMA : decodeURIComponent(named)
}

/** The schema in which a transaction of somebody else's can publish; undefined where there are none. */
export function outboxOf(store: string | Store): string | undefined {
  if (typeof store === 'string') return schemaIn(store)
  return 'outbox' in store && typeof store.outbox === 'string' ? store.outbox : undefined
}
