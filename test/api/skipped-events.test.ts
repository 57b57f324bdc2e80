// An event that was acknowledged and did nothing says why: a flow found no key in it, no flow wants it, or it is unrouted.
import { describe, expect, test } from 'vitest'
import { type Sluice } from '../../src/index.ts'
import { newEventId } from '../../src/model/event.ts'
import { rig, STORES, type Rig } from './rig.ts'

const keyOf = (event: { readonly data: unknown }): string | undefined => {
  const { customer } = event.data as { readonly customer?: string }
  if (customer === 'broken') throw new Error('no such customer')
  return customer
}

const declare = (app: Sluice): unknown => app.flow('sync-customer', { on: 'customer.*', key: keyOf, run: () => {} })

interface Shown {
  readonly note: string
  readonly skipped: readonly unknown[]
  readonly unrouted: readonly unknown[]
}

/** What the API shows of one event, which the list of events shows too. */
async function shown(r: Rig, type: string, data: unknown): Promise<Shown & { readonly id: string }> {
  const id = newEventId(r.t.elapsed)
  await r.t.send({ type, data, id })
  const { note, skipped, unrouted } = (await r.get(`/v1/events/${id}`)).body as Shown
  const listed = (await r.get('/v1/events')).body as { readonly items: readonly unknown[] }
  expect(listed.items).toContainEqual(expect.objectContaining({ id, note, skipped, unrouted }))
  return { id, note, skipped, unrouted }
}

async function explained(r: Rig, key: string): Promise<string> {
  const { body } = await r.get(`/v1/explain?flow=sync-customer&key=${key}`)
  return (body as { readonly text: string }).text
}

describe.each(STORES)('an event that does nothing, on %s', (store) => {
  test('L11 shows which flow skipped it, and that it has no key', async () => {
    const r = await rig(store, declare)
    expect(await shown(r, 'customer.created', {})).toMatchObject({
      note: 'skipped by sync-customer: no key',
      skipped: [{ flow: 'sync-customer', reason: 'no-key' }],
      unrouted: [],
    })
  })

  test('L11 shows that no flow wants it', async () => {
    const r = await rig(store, declare)
    expect(await shown(r, 'invoice.paid', {})).toMatchObject({ note: 'no flow wants this event', skipped: [] })
  })

  test('L11 shows no note if the flow that wants it took it', async () => {
    const r = await rig(store, declare)
    expect(await shown(r, 'customer.created', { customer: 'c' })).toMatchObject({ note: '', skipped: [], unrouted: [] })
  })

  test('L2a shows the flow that still lacks a place for it, with the error', async () => {
    const r = await rig(store, declare)
    expect(await shown(r, 'customer.created', { customer: 'broken' })).toMatchObject({
      note: 'not routed to sync-customer yet: key-failed',
      unrouted: [{ flow: 'sync-customer', reason: 'key-failed', error: 'no such customer' }],
    })
  })

  test('L2a an unrouted event that an operator drops shows that, and not that no flow wanted it', async () => {
    const r = await rig(store, declare)
    const { id } = await shown(r, 'customer.created', { customer: 'broken' })
    await r.post('/v1/dead-letters/drop', { kind: 'unrouted' })
    const { body } = await r.get(`/v1/events/${id}`)
    expect(body).toMatchObject({ note: 'dropped by an operator: sync-customer never got it', unrouted: [] })
  })

  test('explain of an empty lane names the events that its flow skipped lately', async () => {
    const r = await rig(store, declare)
    const { id } = await shown(r, 'customer.created', {})
    await shown(r, 'invoice.paid', {})
    expect(await explained(r, 'cus_1')).toContain(
      `the flow found no key in 1 of the newest 2 events, the last of them "${id}" now`,
    )
  })

  test('explain takes the id of an event for a key, and says what became of it', async () => {
    const r = await rig(store, declare)
    const [skipped, unwanted] = [await shown(r, 'customer.created', {}), await shown(r, 'invoice.paid', {})]
    expect(await explained(r, skipped.id)).toContain('with this id is stored: skipped by sync-customer: no key')
    expect(await explained(r, unwanted.id)).toContain('with this id is stored: no flow wants this event')
  })

  test('the app emits both, with the reason', async () => {
    const heard: unknown[] = []
    const r = await rig(store, (app) => {
      declare(app)
      app.on('event.skipped', ({ flow, text }) => heard.push([flow, text]))
      app.on('event.unwanted', ({ type, text }) => heard.push([type, text]))
    })
    await r.t.send({ type: 'customer.created', data: {} })
    await r.t.send({ type: 'invoice.paid', data: {} })
    await r.t.send({ type: 'customer.created', data: { customer: 'c' } })
    expect(heard).toEqual([
      ['sync-customer', 'skipped by sync-customer: no key'],
      ['invoice.paid', 'no flow wants this event'],
    ])
  })
})
