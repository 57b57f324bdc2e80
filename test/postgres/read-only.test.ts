// A server that rejects writes for a while, as in a failover: processes that connected meanwhile recover by themselves.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { createEventToStore } from '../conformance/builders.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

const opened: { close(): Promise<unknown> }[] = []
let made = 0

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})

interface Scene {
  readonly store: Store
  /** Cuts the existing sessions; new ones may not write. */
  readonly demote: () => Promise<void>
  /** Lets new sessions write, and leaves the existing ones as they are. */
  readonly promote: () => Promise<void>
}

/** A database of its own, because other tests use the same server. */
async function scene(url: string): Promise<Scene> {
  const name = `read_only_${process.pid}_${made++}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.push({ close: () => client.end() })
  await client.query(`create database ${name}`)
  opened.push({ close: () => client.query(`drop database ${name} with (force)`) })
  const address = new URL(url)
  address.pathname = name
  const store = await openPostgresStore({ url: address.href, connections: 3, acceptLoss: true })
  opened.push(store)
  return {
    store,
    async demote() {
      await client.query(`alter database ${name} set default_transaction_read_only = on`)
      await client.query('select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1', [name])
    },
    async promote() {
      await client.query(`alter database ${name} reset default_transaction_read_only`)
    },
  }
}

async function sent(store: Store, name: string): Promise<readonly string[]> {
  const { results } = await store.append({
    routes: 1,
    events: [createEventToStore(name, { id: name, key: 'k' }, Date.now())],
  })
  return results.map(({ kind }) => kind)
}

/** A write that is never optimistic. */
async function noted(store: Store, id: string): Promise<string> {
  const writes = [{ kind: 'note', id, ifRev: 0, body: Buffer.from(id) }]
  return (await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind
}

describe.each(inject('postgresServers'))('$name', ({ tcpUrl }) => {
  test('sessions of a read-only server are not kept, and no error mentions a file', async () => {
    const { store, demote, promote } = await scene(tcpUrl)
    // Waits until appends are optimistic.
    for (const name of ['a', 'b', 'c']) expect(await sent(store, name)).toEqual(['stored'])
    await demote()
    await expect.poll(() => sent(store, 'd').catch(String)).toContain('read-only')
    for (const write of [() => sent(store, 'e'), () => sent(store, 'f'), () => noted(store, 'g')]) {
      const fix = expect.stringContaining('server') as string
      await expect(write()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', status: 503, fix })
    }
    // Reads still work.
    await store.stats()
    await promote()
    // The sessions that only read still exist.
    await expect.poll(() => noted(store, 'h').catch(String)).toBe('written')
    for (const name of ['i', 'j', 'k']) expect(await sent(store, name)).toEqual(['stored'])
  })
})
