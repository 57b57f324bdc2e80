// L15: a response may echo the events of its batch, so a purge removes the responses too.
import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber, type Delivery } from './subscriber.ts'

/** Returns what the store keeps of the attempts at this endpoint. */
async function kept(store: Store, { app }: Delivery, id: string): Promise<string> {
  // Reading the deliveries makes this process write its notes.
  await app.endpoints.deliveries(id)
  const { docs } = await store.readDocs({ kind: 'endpoint-history', ids: [id], after: '', n: 1 })
  return Buffer.from(docs[0]?.body ?? []).toString()
}

const GONE = 'Removed by a purge.'
const echoing = ({ body }: { readonly body: string }): { readonly status: number; readonly body: string } => ({
  status: 500,
  body: `echo of ${/"id":"(\w)"/.exec(body)?.[1]}`,
})

interface Sent extends Delivery {
  readonly id: string
  readonly store: Store
}

/** Creates two dead letters of one event each. */
async function dead(tenant = ''): Promise<Sent> {
  const store = await openStore('memory:')
  const to = await subscriber(echoing, echoing)
  const scene = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } }, store)
  const { id } = await scene.endpoint({ url: to.url, tenant })
  await scene.send(['a'], { tenant, subject: 'ada' })
  await scene.send(['b'], { tenant, subject: 'ada' })
  await expect.poll(() => scene.app.admin.deadLetters.count()).toBe(2)
  const before = await kept(store, scene, id)
  expect([before.includes('echo of a'), before.includes('echo of b')]).toEqual([true, true])
  return { ...scene, id, store }
}

describe('a purge', () => {
  it('by event removes the responses to it, and nothing else', async () => {
    const scene = await dead()
    await scene.app.admin.purge({ event: 'a' })
    const left = await kept(scene.store, scene, scene.id)
    expect([left.includes('echo of a'), left.includes('echo of b'), left.includes(GONE)]).toEqual([false, true, true])
    const [delivered] = await scene.app.endpoints.deliveries(scene.id)
    expect(delivered?.attempts[0]?.answer).toBe('echo of b')
  })

  it.each([
    ['lane', ({ id }: Sent) => ({ flow: 'versions', key: id })],
    ['tenant', () => ({ tenant: 'acme' })],
    ['subject', () => ({ subject: 'ada' })],
  ])('by %s removes all responses of the endpoint', async (_, what) => {
    const scene = await dead('acme')
    await scene.app.admin.purge(what(scene))
    expect(await kept(scene.store, scene, scene.id)).not.toContain('echo')
  })

  it('removes the responses to a batch that waits for its next attempt', async () => {
    const store = await openStore('memory:')
    const to = await subscriber(echoing)
    const scene = await delivery({ retry: ['1h'], window: { quiet: 0 } }, store)
    const { id } = await scene.endpoint({ url: to.url })
    const retry = scene.app.once('run.retry')
    await scene.send(['a', 'b'])
    await retry
    expect(await kept(store, scene, id)).toContain('echo of a')
    await scene.app.admin.purge({ event: 'b' })
    expect(await kept(store, scene, id)).not.toContain('echo')
  })

  it('also removes responses that another process notes later', async () => {
    const store = await openStore('memory:')
    const answering = Promise.withResolvers<void>()
    const to = await subscriber(async (got) => {
      await answering.promise
      return echoing(got)
    })
    const encryptionKey = randomBytes(32).toString('base64')
    const scene = await delivery({ retry: ['1h'], window: { quiet: 0 } }, store, encryptionKey)
    // The operator's process is not started, so that only the other one can claim the lane.
    const operator = new Sluice({ store, log: false, encryptionKey }).delivery('versions', { on: 'version.*' })
    onTestFinished(() => operator.stop())
    const { id } = await scene.endpoint({ url: to.url })
    await scene.send(['a'])
    await to.reached(0)
    await expect.poll(async () => (await operator.admin.lanes.get('versions', id))?.run?.state).toBe('running')
    await operator.admin.purge({ event: 'a' })
    answering.resolve()
    await to.reached(1)
    await scene.app.stop()
    const { docs } = await store.readDocs({ kind: 'endpoint-history', ids: [id], after: '', n: 1 })
    const text = Buffer.from(docs[0]?.body ?? []).toString()
    expect([text.includes(GONE), text.includes('echo')]).toEqual([true, false])
  })
})
