// Tests what deliveries keep in memory between two reads of the store: the subscriptions, and unwritten notes.
import { expect, test } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { systemClock } from '../../src/clock.ts'
import { EndpointDocs } from '../../src/deliver/endpoint-docs.ts'
import { HistoryStore } from '../../src/deliver/health/history-store.ts'
import { sumLastDay, type PostNote } from '../../src/deliver/health/history.ts'
import { Subscriptions } from '../../src/deliver/subscriptions.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'
import { openStore } from '../../src/store/open.ts'
import { VirtualClock } from '../../src/testing/index.ts'

const NO_TEXTS = (): never => {
  throw new Error('Nothing here is confidential.')
}

const EVENT = new FlowEvent({
  id: 'e',
  source: 'app',
  type: 'version.new',
  time: 0,
  tenant: '',
  subject: '',
  attributes: '',
  body: new Uint8Array(),
})

function endpoint(id: string): Parameters<EndpointDocs['add']>[0] {
  return {
    id,
    name: '',
    url: 'https://example.com/',
    where: null,
    disableAfter: '5d',
    eventFilter: ['**'],
    tenant: '',
    description: '',
    headers: [],
    signing: { kind: 'standard' },
    form: 'standard',
    rate: null,
    createdAt: 0,
    active: true,
    proof: 'none',
    transform: null,
    encrypted64: '',
  }
}

const BY = { who: 'ada', what: 'a test' } as const

test('hundreds of registrations at once read the list of endpoints a few times', async () => {
  const store = await openStore('memory:')
  let reads = 0
  const readDocs = store.readDocs.bind(store)
  store.readDocs = (call) => {
    if (call.kind === 'endpoint' && call.after === '') reads++
    return readDocs(call)
  }
  const app = new Sluice({ store, log: false, encryptionKey: Buffer.alloc(32, 1).toString('base64') })
  const urls = Array.from({ length: 200 }, (_, n) => `https://example.com/${n}`)
  const made = await Promise.all(urls.map((url) => app.endpoints.create({ url })))
  expect(reads).toBeLessThan(20)
  expect(new Set((await app.endpoints.list()).map(({ id }) => id))).toEqual(new Set(made.map(({ id }) => id)))
  expect(made[0]?.note).toMatch(/has no delivery/)
  await app.stop()
})

test('refresh during a read waits for a newer read', async () => {
  const store = await openStore('memory:')
  let reads = 0
  const readDocs = store.readDocs.bind(store)
  store.readDocs = (call) => {
    reads++
    return readDocs(call)
  }
  const docs = new EndpointDocs({ store: () => Promise.resolve(store), clock: systemClock, knownRoutesEpoch: () => 0 })
  const subscriptions = new Subscriptions(docs)
  await docs.add(endpoint('ep_1'), BY)
  const first = subscriptions.refresh()
  await docs.add(endpoint('ep_2'), BY)
  const others = Array.from({ length: 50 }, () => subscriptions.refresh())
  await Promise.all([first, ...others])
  expect(subscriptions.matching(EVENT).toSorted()).toEqual(['ep_1', 'ep_2'])
  expect(subscriptions.epoch).toBe((await store.stats()).routes)
  expect(reads).toBeLessThanOrEqual(3)
})

test('a failed read rejects its own callers only', async () => {
  const store = await openStore('memory:')
  let isDown = true
  const readDocs = store.readDocs.bind(store)
  store.readDocs = (call) => (isDown ? Promise.reject(new Error('no disk')) : readDocs(call))
  const docs = new EndpointDocs({ store: () => Promise.resolve(store), clock: systemClock, knownRoutesEpoch: () => 0 })
  const subscriptions = new Subscriptions(docs)
  await expect(subscriptions.refresh()).rejects.toThrow('no disk')
  isDown = false
  await docs.add(endpoint('ep_1'), BY)
  await subscriptions.refresh()
  expect(subscriptions.matching(EVENT)).toEqual(['ep_1'])
})

const post = (n: number): PostNote => ({
  run: `r${n}`,
  attempt: 1,
  at: n,
  ms: 1,
  status: 200,
  answer: '',
  error: '',
  latency: 1,
  isLast: false,
})

test('no note is lost while the store rejects writes', async () => {
  const store = await openStore('memory:')
  let isDown = true
  let writes = 0
  const writeDocs = store.writeDocs.bind(store)
  store.writeDocs = (call) => {
    writes++
    return isDown ? Promise.reject(new Error('no disk')) : writeDocs(call)
  }
  const clock = new VirtualClock(0)
  const histories = new HistoryStore({
    store: () => Promise.resolve(store),
    clock,
    docs: { findMissing: () => Promise.resolve([]) },
    texts: NO_TEXTS,
  })
  for (let n = 0; n < 1_234; n++) histories.note('ep_1', post(n))
  expect(writes).toBe(0)
  clock.advance(2_000)
  await histories.flush()
  expect(writes).toBeGreaterThan(0)
  histories.note('ep_1', post(2_000))
  isDown = false
  const history = (await histories.getAll(['ep_1'])).get('ep_1')
  expect(history && sumLastDay(history, 0).delivered).toBe(1_235)
  expect(history?.attempts.at(-1)?.run).toBe('r2000')
  const other = new HistoryStore({
    store: () => Promise.resolve(store),
    clock,
    docs: { findMissing: () => Promise.resolve([]) },
    texts: NO_TEXTS,
  })
  expect(await other.getAll(['ep_1'])).toEqual(new Map([['ep_1', history]]))
})
