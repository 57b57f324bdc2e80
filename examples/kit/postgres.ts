// `openPlace` turns what --store says into the address of a store, and starts what that needs.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../test/postgres/server.ts'

export interface StorePlace {
  readonly store: string
  close(): Promise<void>
}

export interface PlaceOptions {
  /** Whether the embedded server waits for its disk (default). Only a test that kills nothing can do without. */
  readonly isDurable?: boolean
}

const NOT_DURABLE = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off' }

/** `sqlite` is a file in a temporary folder, `postgres` an embedded server; any other text is an address. */
export async function openPlace(asked: string, { isDurable = true }: PlaceOptions = {}): Promise<StorePlace> {
  if (asked === 'sqlite') {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-example-'))
    const close = async (): Promise<void> => rmSync(folder, { recursive: true, force: true })
    return { store: `sqlite:${join(folder, 'example.db')}`, close }
  }
  if (asked !== 'postgres') return { store: asked, close: async () => {} }
  const server = await startServer({
    version: 18,
    settings: { max_connections: '200', ...(isDurable ? {} : NOT_DURABLE) },
  })
  return { store: server.tcpUrl, close: () => server.stop() }
}
