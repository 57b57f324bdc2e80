// Tests that a delivery forwards a received event only if a glob names its source.
import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { DeliveryOptions } from '../../src/app/deliveries.ts'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { unverified } from '../../src/sources/index.ts'
import { ownFile } from '../temporary-folder.ts'
import { subscriber } from './subscriber.ts'

const KEY = randomBytes(32).toString('base64')

function built(store: string | Store, deliveries: Readonly<Record<string, DeliveryOptions['on']>>): Sluice {
  const app = new Sluice({ store, encryptionKey: KEY, log: false, delivery: { allowLoopback: true } })
  app.source('stripe', unverified({ verify: 'none', type: 'type' }))
  for (const [name, on] of Object.entries(deliveries)) app.delivery(name, { on })
  onTestFinished(() => app.stop())
  return app
}

/** Sends an event of this type as the provider does, and returns the id of the event. */
async function receive(app: Sluice, type: string): Promise<string> {
  const request = new Request('http://localhost/in/stripe', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type, card: '4242' }),
  })
  const answer = await app.fetch(request)
  expect(answer.status).toBe(202)
  const { events } = (await answer.json()) as { events: { id: string }[] }
  return events[0]?.id ?? ''
}

async function routedTo(app: Sluice, id: string): Promise<readonly (string | undefined)[]> {
  return (await app.admin.events.show(id))?.lanes.map(({ flow }) => flow) ?? []
}

describe.each(['memory:', 'sqlite:'])('an inbound event, on %s', (address) => {
  const store = (): string => (address === 'memory:' ? address : ownFile())

  it('reaches no endpoint through a glob over types, ** or a predicate', async () => {
    const app = built(store(), { typed: 'customer.*', all: '**', asked: () => true })
    const to = await subscriber()
    for (const eventFilter of [null, ['customer.*'], ['customer.created'], ['**'], ['stripe/**']])
      await app.endpoints.create({ url: to.url, eventFilter })
    await app.start()
    const inbound = await receive(app, 'customer.created')
    expect(await routedTo(app, inbound)).toEqual([])
  })

  it('reaches an endpoint where the delivery and its filter both name the source', async () => {
    const app = built(store(), { raw: ['stripe/customer.*'] })
    const [named, typed, open] = [await subscriber(), await subscriber(), await subscriber()]
    await app.endpoints.create({ url: named.url, eventFilter: ['stripe/**'] })
    await app.endpoints.create({ url: typed.url, eventFilter: ['customer.*'] })
    await app.endpoints.create({ url: open.url })
    await app.start()
    const inbound = await receive(app, 'customer.created')
    await named.reached(1)
    expect(named.got[0]?.ids).toEqual([inbound])
    expect((await app.admin.events.show(inbound))?.lanes).toHaveLength(1)
    expect([typed.got, open.got]).toEqual([[], []])
  })

  it('is not placed by a replay into the delivery', async () => {
    const app = built(store(), { typed: 'customer.*' })
    const to = await subscriber()
    await app.endpoints.create({ url: to.url })
    await app.start()
    const inbound = await receive(app, 'customer.created')
    const done = app.once('replay.done')
    await app.admin.replays.start({ event: inbound }, { into: 'typed' })
    expect(await done).toMatchObject({ placed: 0 })
    expect(to.got).toEqual([])
  })

  it('that the app publishes again with its attributes is a published event', async () => {
    const app = built(store(), { typed: 'customer.*' })
    app.flow('forwards', {
      on: 'stripe/**',
      run: (run) =>
        run.publish(
          run.events.map(({ type, attributes }) => ({ id: 'mine', type, attributes: { ...attributes, mine: true } })),
        ),
    })
    const to = await subscriber()
    await app.endpoints.create({ url: to.url })
    await app.start()
    await receive(app, 'customer.created')
    await to.reached(1)
    expect(to.got[0]?.ids).toEqual(['mine'])
    expect((await app.admin.events.show('mine'))?.attributes).toEqual({ mine: true })
  })
})

it('an event that the app publishes with the name of a source is a published event', async () => {
  const app = built('memory:', { typed: 'customer.*' })
  const to = await subscriber()
  await app.endpoints.create({ url: to.url })
  await app.start()
  await app.publish({ id: 'a', source: 'stripe', type: 'customer.created' })
  await to.reached(1)
  expect(to.got[0]?.ids).toEqual(['a'])
})

it('a process without the delivery creates no unrouted event for it', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const delivers = new Sluice({ store, encryptionKey: KEY, log: false, delivery: { allowLoopback: true } })
  delivers.delivery('typed', { on: 'customer.*' }).delivery('asked', { on: () => true })
  onTestFinished(() => delivers.stop())
  await delivers.start()
  const receives = built(store, {})
  await receives.start()
  await receive(receives, 'customer.created')
  expect((await receives.admin.deadLetters.list({ kind: 'unrouted' })).items).toEqual([])
  await receives.publish({ type: 'customer.created' })
  expect(
    (await receives.admin.deadLetters.list({ kind: 'unrouted' })).items.map(({ flow }) => flow).toSorted(),
  ).toEqual(['asked', 'typed'])
})

it('a publisher cannot mark an event as received', async () => {
  const app = built('memory:', {})
  await expect(app.publish({ type: 'a', attributes: { 'sluice-received': true } })).rejects.toMatchObject({
    code: 'EVENT_INVALID',
  })
})
