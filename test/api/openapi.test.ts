// Tests that the OpenAPI document is the committed one, is valid OpenAPI 3.1, and is correct: a client that knows nothing else
// can call every route.
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes/index.ts'
import { CHANGE_KINDS } from '../../src/api/stream.ts'
import { call, DOCUMENT, OPERATIONS, type Operated, type Schema, type Told } from './document.ts'
import { STORES } from './rig.ts'
import { seeded, type Seeded } from './seeded.ts'

describe('the document', () => {
  test('is the committed one; `node scripts/openapi.mjs` writes it', async () => {
    const committed = await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8')
    expect(JSON.parse(committed)).toEqual(DOCUMENT)
  })

  test('matches docs/api.md: every route with its role, and no other', async () => {
    const text = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8')
    const told = [...text.matchAll(/^\| `([A-Z]+ \/\S+)` +\| (\w+) +\|/gm)].map(
      ([, address, role]) => `${address} ${role}`,
    )
    const routes = ROUTES.map(({ method, path, role }) => `${method} ${path} ${role}`)
    expect(told.toSorted()).toEqual([...routes, 'GET /v1/stream read'].toSorted())
  })

  test('has every route, under a unique operation id', () => {
    const routes = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(OPERATIONS.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(routes.toSorted())
    const names = OPERATIONS.map(({ operationId }) => operationId)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]+$/)
  })

  test('has version 3.1, and each path names each of its parameters once', () => {
    expect(DOCUMENT.openapi).toMatch(/^3\.1\.\d+$/)
    for (const { path, method, parameters = [] } of OPERATIONS) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = parameters.filter((one) => one.in === 'path')
      expect([method, path, declared.map(({ name }) => name)]).toEqual([method, path, inPath])
      expect(declared.every(({ required }) => required)).toBe(true)
      const names = parameters.map(({ name, in: where }) => `${where} ${name}`)
      expect(new Set(names).size).toBe(names.length)
    }
  })

  test('has no two paths that differ only in the names of parameters', () => {
    const shapes = Object.keys(DOCUMENT.paths).map((path) => path.replaceAll(/\{\w+\}/g, '{}'))
    expect(new Set(shapes).size).toBe(shapes.length)
  })

  test('has a summary, a response and problems for each route, and a body where one is read', () => {
    for (const operation of OPERATIONS) {
      expect(operation.summary).toMatch(/^[A-Z].*\.$/)
      const done = ['triggerDeliveries', 'publishEvents'].includes(operation.operationId) ? '202' : '200'
      expect(Object.keys(operation.responses)).toEqual([done, 'default'])
      expect(operation.requestBody !== undefined).toBe(operation.method !== 'GET')
    }
  })

  test('has schemas that are valid JSON Schema 2020-12, with patterns that compile', () => {
    const schemas = schemasIn([DOCUMENT.paths, DOCUMENT.components.schemas])
    expect(schemas.length).toBeGreaterThan(500)
    for (const schema of schemas) {
      if (schema.type !== undefined) expect(TYPES).toContain(schema.type)
      if (schema.pattern !== undefined) expect(() => new RegExp(schema.pattern ?? '', 'u')).not.toThrow()
      for (const name of schema.required ?? []) expect(Object.keys(schema.properties ?? {})).toContain(name)
    }
  })
})

const TYPES = ['object', 'array', 'string', 'integer', 'number', 'boolean', 'null']

function schemasIn(value: unknown): readonly Schema[] {
  if (typeof value !== 'object' || value === null) return []
  const inside = Object.values(value).flatMap(schemasIn)
  return 'type' in value && typeof value.type === 'string' ? [value as Schema, ...inside] : inside
}

interface Listed {
  readonly items: readonly { readonly id: string }[]
}

test('contains the stream, with all types of its events', () => {
  const { get } = DOCUMENT.paths['/v1/stream'] ?? {}
  expect(Object.keys(get?.responses['200']?.content ?? {})).toEqual(['text/event-stream'])
  expect(DOCUMENT.components.schemas['Change']?.properties?.['kind']?.enum).toEqual([...CHANGE_KINDS])
})

describe.each(STORES)('a client built from the document, on %s', (store) => {
  test('can call every route', async () => {
    const r = await seeded(store)
    const client = Object.fromEntries(
      OPERATIONS.map((operation) => [
        operation.operationId,
        async (told: Told = {}): Promise<unknown> => (await call(r, operation, told, { key: r.operate })).body,
      ]),
    )
    const told = await argumentsOf(r, client)
    for (const operation of inOrder(OPERATIONS)) {
      const answer = await call(r, operation, told[operation.operationId] ?? {}, { key: r.operate })
      const done = ['triggerDeliveries', 'publishEvents'].includes(operation.operationId) ? 202 : 200
      expect([operation.operationId, answer.status, answer.body]).toMatchObject([operation.operationId, done, {}])
    }
  })
})

const of = (id: string): Told => ({ parameters: { id } })

type Client = Readonly<Record<string, (told?: Told) => Promise<unknown>>>

/** The arguments of each operation that names an object; the lists return the ids. */
async function argumentsOf(r: Seeded, client: Client): Promise<Readonly<Record<string, Told>>> {
  const listed = async (name: string, parameters = {}): Promise<readonly string[]> => {
    const page = (await client[name]?.({ parameters })) as Listed | undefined
    return page?.items.map(({ id }) => id) ?? []
  }
  const [event = ''] = await listed('listEvents')
  const [lane = '', ...lanes] = await listed('listLanes', { flow: 'waits' })
  const [run = ''] = await listed('listRuns')
  const [deadLetter = '', other = ''] = await listed('listDeadLetters')
  const { act } = await r.app.admin.deadLetters.act('drop', { flow: 'nothing' })
  const { secret: _secret, ...spare } = await r.app.admin.keys.create({ name: 'spare', role: 'read' })
  const [subscriber = '', another = ''] = await listed('listSubscribers')
  const [running = ''] = await listed('listLanes', { flow: 'runs' })
  return {
    publishEvents: { body: { type: 'ping', data: { user: 'zoe' } } },
    showEvent: of(event),
    replayEvent: of(event),
    pauseFlow: { parameters: { flow: 'does' }, body: { reason: 'a look first' } },
    resumeFlow: { parameters: { flow: 'does' } },
    retireFlow: { parameters: { flow: 'does' } },
    showLane: of(lane),
    explainLane: of(lane),
    explain: { parameters: { flow: 'waits', key: 'ada' } },
    holdLane: { ...of(lane), body: { reason: 'a look first', for: '1h' } },
    unholdLane: of(lane),
    runLaneNow: of(lanes[1] ?? ''),
    dropLane: of(lane),
    cancelLane: of(running),
    showRun: of(run),
    showDeadLetter: of(deadLetter),
    retryDeadLetter: of(deadLetter),
    dropDeadLetter: of(other),
    showDeadLetterAct: of(act),
    showReplay: of('again'),
    cancelReplay: of('again'),
    resumeReplay: of('again'),
    startReplay: { body: { filter: { type: 'ping' }, into: ['does'], rate: 10, per: '1s' } },
    showLimit: { parameters: { name: 'calls/ada' } },
    showLimitUsage: { parameters: { name: 'calls/ada' } },
    pauseLimit: { parameters: { name: 'calls/ada' }, body: { for: '1m', reason: 'they asked us to' } },
    resumeLimit: { parameters: { name: 'calls/ada' } },
    listRefused: { parameters: { name: 'shop' } },
    signSample: { parameters: { name: 'hooks' } },
    showSecret: { parameters: { name: 'pages' } },
    forgetSecret: { parameters: { name: 'pages' } },
    retryDeadLetters: { body: { flow: 'fails' } },
    dropDeadLetters: { body: { all: true } },
    purge: { body: { tenant: 'acme' } },
    createKey: { body: { name: 'eve', role: 'read' } },
    revokeKey: of(spare.id),
    showSubscriber: of(subscriber),
    showSubscriberStats: of(subscriber),
    listDeliveries: of(subscriber),
    registerSubscriber: { body: { url: 'https://new.example.com/hook', eventFilter: ['ping'] } },
    changeSubscriber: { ...of(subscriber), body: { name: 'Ada' } },
    rotateSubscriberSecret: { ...of(subscriber), body: {} },
    testSubscriber: of(subscriber),
    proveSubscriber: of(subscriber),
    replaySubscriber: of(subscriber),
    makeSubscriberToken: of(another),
    revokeSubscriberToken: of(another),
    showTransform: of(another),
    setTransform: { ...of(another), body: { code: 'export default (events) => events' } },
    testTransform: of(another),
    removeTransform: of(another),
    enableSubscriber: { ...of(subscriber), body: { from: 'backlog' } },
    pauseSubscriber: of(subscriber),
    resumeSubscriber: of(subscriber),
    removeSubscriber: of(subscriber),
  }
}

/** Deletions come after reads. */
function inOrder(operations: readonly Operated[]): readonly Operated[] {
  return operations.toSorted((one, other) => rankOf(one) - rankOf(other))
}

function rankOf({ method, operationId }: Operated): number {
  if (method === 'GET') return 0
  return /^(?:drop|purge|revoke|remove)/.test(operationId) ? 2 : 1
}
