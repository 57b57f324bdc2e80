// R1, R2: a request may contain as many events as its source allows. They are stored in slices, and the request itself is
// stored once.
import { describe, expect, it } from 'vitest'
import { Intake } from '../../src/publish/intake.ts'
import { createEvent, type RoutableEvent } from '../../src/model/new-event.ts'
import type { PublishResult } from '../../src/model/event.ts'
import type { Source } from '../../src/receive/source.ts'
import { cloudEvents, garmin, strava } from '../../src/sources/index.ts'
import { eventsIn, opened, problemOf, textOf } from './scene.ts'

function item(n: number): object {
  return { userId: `user-${n}`, summaryId: `s-${n}`, startTimeInSeconds: 1_519_679_700 + n }
}

function push(n: number): Request {
  const body = JSON.stringify({ epochs: Array.from({ length: n }, (_, at) => item(at)) })
  return new Request('http://hooks.test/in/garmin', { method: 'POST', headers: { 'garmin-client-id': 'c' }, body })
}

/** A source whose requests contain this many events, with at most two per call. */
function carrying(n: number): Source {
  const events = Array.from({ length: n }, (_, at) => ({ type: 't', dedupeId: String(at), body: Buffer.from('{}') }))
  return { scheme: 'x', secrets: [], verify: 'none', maxEvents: 2, events: () => events }
}

describe('a request', () => {
  it('of Garmin with 25,000 items is stored completely, and recognised again', async () => {
    const { app, store } = await opened((one) => one.source('garmin', garmin({ clientId: 'c' })))
    for (let n = 0; n < 2; n++) expect((await app.fetch(push(25_000))).status).toBe(200)
    const { count } = await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 100_000 })
    expect(count).toBe(25_000)
  })

  it('may have as many events as its source allows, and no more', async () => {
    const { app } = await opened((one) => one.source('two', carrying(2)).source('three', carrying(3)))
    const send = (name: string): Promise<Response> =>
      app.fetch(new Request(`http://hooks.test/in/${name}`, { method: 'POST', body: '-' }))
    expect((await send('two')).status).toBe(202)
    expect(await problemOf(await send('three'))).toMatchObject({
      code: 'TOO_MANY_EVENTS',
      detail: 'The request has 3 events; at most 2 are allowed.',
    })
  })
})

/** Events of 100 bytes each. */
const many = (name: string, n: number): RoutableEvent[] =>
  Array.from({ length: n }, (_, at) =>
    createEvent({ id: `${name}${at}`, type: 't', body: HUNDRED }, { now: 0, dedupeFor: 1 }),
  )

const HUNDRED = Buffer.alloc(100)

describe('the intake', () => {
  it('takes more than 10,000 events in slices with others in between, and responds for all of them', async () => {
    const calls: (readonly string[])[] = []
    const store = async (events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> => {
      calls.push(events.map(({ id }) => id))
      return events.map(({ id }) => ({ id, kind: 'stored', of: undefined }))
    }
    const intake = new Intake({ store, maxEvents: 20_000, maxBytes: 1e9 })
    const large = intake.take(many('a', 25_000))
    const small = intake.take(many('b', 1))
    expect((await large)?.map(({ id }) => id)).toEqual(many('a', 25_000).map(({ id }) => id))
    expect(await small).toMatchObject([{ id: 'b0' }])
    expect(calls.map(({ length }) => length)).toEqual([10_000, 1, 10_000, 5_000])
  })

  it('has room for others again when a slice fails, and rejects the request', async () => {
    let calls = 0
    const store = async (events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> => {
      if (++calls === 2) throw new Error('disk')
      return events.map(({ id }) => ({ id, kind: 'stored', of: undefined }))
    }
    const intake = new Intake({ store, maxEvents: 100, maxBytes: 1_000 })
    await expect(intake.take(many('a', 25_000))).rejects.toThrow('disk')
    expect(calls).toBe(2)
    const some = [intake.take(many('b', 5)), intake.take(many('c', 5))]
    expect(some).not.toContain(undefined)
    expect(intake.take(many('d', 1))).toBeUndefined()
    for (const one of some) await one
  })

  it('has no room for a large request while others wait, except for its first slice', async () => {
    const gate = Promise.withResolvers<void>()
    const store = async (events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> => {
      await gate.promise
      return events.map(({ id }) => ({ id, kind: 'stored', of: undefined }))
    }
    const intake = new Intake({ store, maxEvents: 20_000, maxBytes: 1e9 })
    const first = intake.take(many('a', 1))
    const large = intake.take(many('b', 100_000))
    expect(large).toBeDefined()
    expect(intake.take(many('c', 10_000))).toBeUndefined()
    gate.resolve()
    expect([(await first)?.length, (await large)?.length]).toEqual([1, 100_000])
  })
})

interface Kept {
  readonly id: string
  readonly of?: string
  readonly headers?: object
  readonly body64?: string
}

describe('the stored request', () => {
  it('is stored with its first event, and the other events refer to that one', async () => {
    const { app, store } = await opened((one) => one.source('ce', cloudEvents({ verify: 'none' })))
    const batch = [1, 2, 3].map((n) => ({ specversion: '1.0', id: String(n), source: '/', type: 't' }))
    const headers = { 'content-type': 'application/cloudevents-batch+json', 'x-pad': 'p'.repeat(10_000) }
    const body = JSON.stringify(batch)
    await app.fetch(new Request('http://hooks.test/in/ce', { method: 'POST', headers, body }))
    const [first, ...others] = (await eventsIn(store)).map(({ request }) => JSON.parse(textOf(request)) as Kept)
    expect(first?.headers).toMatchObject({ 'x-pad': headers['x-pad'] })
    expect(Buffer.from(first?.body64 ?? '', 'base64').toString()).toBe(body)
    expect(first?.of).toBeUndefined()
    expect(others).toEqual([1, 2].map(() => ({ id: first?.id, at: expect.any(Number) as number, of: first?.id })))
  })

  it('has no second copy of a body that is the event itself', async () => {
    const { app, store } = await opened((one) => one.source('strava', strava({ verifyToken: 't', subscriptionId: 1 })))
    const event = { subscription_id: 1, object_type: 'activity', object_id: 5, aspect_type: 'create' }
    for (const body of [JSON.stringify(event), ` ${JSON.stringify(event)}`]) {
      await app.fetch(new Request('http://hooks.test/in/strava', { method: 'POST', body }))
    }
    const kept = (await eventsIn(store)).map(({ request }) => JSON.parse(textOf(request)) as Kept)
    // The second body has a space more than its event, so the event is only a part of it.
    expect(kept.map(({ body64 }) => body64 === undefined)).toEqual([true, false])
  })

  it('is rejected if a subject or a tenant is longer than an index can hold', async () => {
    const { app, store } = await opened((one) => one.source('ce', cloudEvents({ verify: 'none', tenant: 'of' })))
    const send = (id: string, more: object): Promise<Response> => {
      const body = JSON.stringify({ specversion: '1.0', id, source: '/', type: 't', ...more })
      const headers = { 'content-type': 'application/cloudevents+json' }
      return app.fetch(new Request('http://hooks.test/in/ce', { method: 'POST', headers, body }))
    }
    const [most, long] = ['x'.repeat(1_024), 'x'.repeat(1_025)]
    expect((await send('1', { subject: most, of: most })).status).toBe(202)
    for (const more of [{ subject: long }, { of: long }]) {
      expect((await problemOf(await send('2', more))).code).toBe('EVENT_INVALID')
    }
    expect(await eventsIn(store)).toHaveLength(1)
  })
})
