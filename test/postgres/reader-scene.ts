// A store that a plain role owns, with events of two tenants and of none, and roles that read it.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { claimOf, done, mark, newEvent } from '../../src/store/conformance/vocabulary.ts'
import type { NewEvent, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

export interface ReaderScene {
  readonly schema: string
  /** Who may do everything on the server. */
  readonly admin: pg.Client
  /** No more than the owner of the schema. */
  readonly owner: string
  readonly store: Store
  /** A new role, which may do nothing yet. */
  readonly role: (name: string) => Promise<string>
  /** What a role is answered, alone on its connection. */
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
  /** As if it had logged in: no role but this one. */
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

function of(tenant: string, kind: string, words: object = {}): NewEvent {
  const id = `${tenant === '' ? 'nobody' : tenant}-${kind}`
  return newEvent(id, { id, tenant, key: id, flow: kind, ...words }, 0)
}

/** Of each tenant one that is done, one that is dead, one that waits, one that runs, and one that has no place yet. */
export async function fill(store: Store): Promise<void> {
  const tenants = ['t1', 't2', '']
  await store.append({
    routes: 1,
    events: tenants.flatMap((tenant) => [
      of(tenant, 'done'),
      of(tenant, 'dead'),
      of(tenant, 'waits', { quiet: 3_600_000 }),
      of(tenant, 'runs'),
      newEvent(
        'x',
        { id: `${tenant === '' ? 'nobody' : tenant}-lost`, tenant, marks: [mark('key-failed', 'lost')] },
        0,
      ),
    ]),
  })
  const call = { process: 'p', routes: 1, budget: 1_000_000 }
  const claim = ['done', 'dead', 'runs'].map((flow) => claimOf({ flow }))
  const { claimed } = await store.turn({ ...call, request: 1, settle: [], claim })
  const settle = claimed
    .filter(({ flow }) => flow !== 'runs')
    .map(({ lane, token, flow }) => ({ ...(flow === 'done' ? END : DEAD), lane, token }))
  await store.turn({ ...call, request: 2, settle, claim: [] })
  // Known already: a receipt of each.
  await store.append({ routes: 1, events: tenants.map((tenant) => ({ ...of(tenant, 'done'), id: `again-${tenant}` })) })
  await store.writeDocs({
    writes: [{ kind: 'secret', id: 'a', ifRev: 0, body: Buffer.from('sealed') }],
    raiseRoutes: false,
    audit: undefined,
  })
}
