// A store that a plain role owns, with events of two tenants and of none, and roles that read it.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { createClaimRequest, done, createUnrouted, createEventToStore } from '../conformance/builders.ts'
import type { EventToStore, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

export interface ReaderScene {
  readonly schema: string
  /** A superuser of the server. */
  readonly admin: pg.Client
  /** The owner of the schema, without further rights. */
  readonly owner: string
  readonly store: Store
  /** A new role without any rights. */
  readonly role: (name: string) => Promise<string>
  /** Queries as the role, on a connection of its own. */
  readonly as: (role: string) => Promise<(sql: string) => Promise<readonly Record<string, unknown>[]>>
  readonly open: (as: string) => Promise<Store>
}

let made = 0

export async function readerScene(url: string): Promise<ReaderScene> {
  const schema = `reader_${process.pid}_${made++}`
  const ends: (() => Promise<unknown>)[] = []
  onTestFinished(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const connect = async (connectionString: string): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    ends.push(() => client.end())
    return client
  }
  const admin = await connect(url)
  await admin.query(`set search_path = ${schema}`)
  const role = async (name: string): Promise<string> => {
    const whole = `${schema}_${name}`
    await admin.query(`create role ${whole}`)
    ends.push(() => admin.query(`drop owned by ${whole} cascade; drop role ${whole}`))
    return whole
  }
  /** Acts as if the role had logged in, without any other role. */
  const urlOf = (name: string): string =>
    `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent(`-c role=${name}`)}`
  const open = async (as: string): Promise<Store> => {
    const store = await openPostgresStore({ url: urlOf(as), schema, connections: 2, acceptLoss: true })
    ends.push(() => store.close())
    return store
  }
  const owner = await role('owner')
  await admin.query(`create schema ${schema} authorization ${owner}`)
  const store = await open(owner)
  return {
    schema,
    admin,
    owner,
    store,
    role,
    open,
    as: async (name) => {
      const client = await connect(urlOf(name))
      await client.query(`set search_path = ${schema}`)
      return async (sql) => (await client.query<Record<string, unknown>>(sql)).rows
    },
  }
}

const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
const DEAD = { ...END, outcome: { kind: 'dead', reason: 'no', block: false } } as const

function of(tenant: string, kind: string, words: object = {}): EventToStore {
  const id = `${tenant === '' ? 'nobody' : tenant}-${kind}`
  return createEventToStore(id, { id, tenant, key: id, flow: kind, ...words }, 0)
}

/** For each tenant: one event that is done, one dead, one waiting, one running, and one without placements. */
export async function fill(store: Store): Promise<void> {
  const tenants = ['t1', 't2', '']
  await store.append({
    routes: 1,
    events: tenants.flatMap((tenant) => [
      of(tenant, 'done'),
      of(tenant, 'dead'),
      of(tenant, 'waits', { quiet: 3_600_000 }),
      of(tenant, 'runs'),
      createEventToStore(
        'x',
        { id: `${tenant === '' ? 'nobody' : tenant}-lost`, tenant, unrouted: [createUnrouted('key-failed', 'lost')] },
        0,
      ),
    ]),
  })
  const call = { process: 'p', routes: 1, budget: 1_000_000 }
  const claim = ['done', 'dead', 'runs'].map((flow) => createClaimRequest({ flow }))
  const { claimed } = await store.settleAndClaim({ ...call, request: 1, settle: [], claim })
  const settle = claimed
    .filter(({ flow }) => flow !== 'runs')
    .map(({ lane, token, flow }) => ({ ...(flow === 'done' ? END : DEAD), lane, token }))
  await store.settleAndClaim({ ...call, request: 2, settle, claim: [] })
  // Duplicates, so that each event has a receipt.
  await store.append({ routes: 1, events: tenants.map((tenant) => ({ ...of(tenant, 'done'), id: `again-${tenant}` })) })
  await store.writeDocs({
    writes: [{ kind: 'secret', id: 'a', ifRev: 0, body: Buffer.from('sealed') }],
    raiseRoutes: false,
    audit: undefined,
  })
}
