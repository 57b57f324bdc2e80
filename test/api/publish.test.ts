// Tests `POST /v1/events`: our JSON and CloudEvents, repeated ids, roles, bounds, and problems that name the field.
import { describe, expect, test } from 'vitest'
import { bearer } from '../../src/sources/index.ts'
import type { Sluice } from '../../src/index.ts'
import { rig, START, type Rig } from './rig.ts'

const SECRET = 'shop-token-0123456789'

interface Seen {
  readonly texts: string[]
}

interface Opened extends Rig {
  readonly seen: Seen
  readonly publish: string
  readonly operate: string
  readonly read: string
}

async function opened(store: string): Promise<Opened> {
  const seen: Seen = { texts: [] }
  const r = await rig(store, (app: Sluice) =>
    app
      .source('shop', bearer({ secret: SECRET }))
      .flow('f', { on: 'app/**', run: ({ events }) => void seen.texts.push(...events.map(({ text }) => text)) })
      .flow('g', { on: 'never', run: ({ events }) => void seen.texts.push(...events.map(({ text }) => `g ${text}`)) }),
  )
  const create = async (role: 'read' | 'publish' | 'operate'): Promise<string> =>
    (await r.app.admin.keys.create({ name: role, role })).secret
  return { ...r, seen, operate: await create('operate'), publish: await create('publish'), read: await create('read') }
}

function cloudEvent(id: string): object {
  return {
    specversion: '1.0',
    id,
    source: '/s',
    type: 'paid',
    data: id,
    tenant: 'acme',
  }
}

async function ran({ t, seen }: Opened): Promise<readonly string[]> {
  await t.advance('10ms')
  return seen.texts
}

describe.each(['memory:', 'sqlite::memory:'])('POST /v1/events on %s', (store) => {
  test('stores one event with all its fields; a repeated id runs once', async () => {
    const r = await opened(store)
    const body =
      '{"type":"paid","id":"a","subject":"ada","tenant":"acme","time":"2026-01-31T12:00:00Z","attributes":{"x":1},' +
      '"data": {"n": 12345678901234567890}}'
    const first = await r.post('/v1/events', body, { key: r.publish })
    expect([first.status, first.body]).toEqual([202, { events: [{ id: 'a', kind: 'stored' }] }])
    expect((await r.post('/v1/events', body, { key: r.operate })).body).toEqual({
      events: [{ id: 'a', kind: 'repeated', of: 'a' }],
    })
    const other = { type: 'paid', id: 'a', data: 1, tenant: 'acme' }
    expect((await r.post('/v1/events', other, { key: r.publish })).body).toEqual({
      events: [{ id: 'a', kind: 'conflict', of: 'a' }],
    })
    expect(await ran(r)).toEqual(['{"n": 12345678901234567890}'])
    expect(await r.app.admin.events.show('a')).toMatchObject({
      source: 'app',
      subject: 'ada',
      tenant: 'acme',
      time: Date.UTC(2026, 0, 31, 12),
      attributes: { x: 1 },
    })
  })

  test('stores a list, in its order; a fault in one event stores none and is named', async () => {
    const r = await opened(store)
    const good = [1, 2, 3].map((n) => ({ type: 'paid', id: `e${n}`, data: n }))
    const told = async (body: unknown): Promise<unknown[]> => {
      const answer = await r.post('/v1/events', body, { key: r.publish })
      const { code, detail } = answer.body as { code: string; detail: string }
      return [answer.status, code, detail]
    }
    expect(await told([...good, { data: 1 }])).toEqual([
      400,
      'REQUEST_INVALID',
      expect.stringMatching(/^body: 3: type: /),
    ])
    expect(await told([{ type: 'x', id: 'y'.repeat(200) }, good[0]])).toEqual([
      400,
      'EVENT_INVALID',
      expect.stringMatching(/^body: 0: id must be text of 1 to 128/),
    ])
    expect(await told({ type: 'x', colour: 'red' })).toEqual([
      400,
      'REQUEST_INVALID',
      expect.stringContaining('colour'),
    ])
    expect(await told([...good, { type: 'x', source: 'shop' }])).toEqual([
      400,
      'EVENT_INVALID',
      expect.stringContaining('body: 3: source must not be the name of a source'),
    ])
    for (const source of ['sluice', 'sluice.delayed'])
      expect(await told({ type: 'run.dead', source })).toEqual([
        400,
        'EVENT_INVALID',
        expect.stringContaining('source'),
      ])
    expect(await told(Array.from({ length: 1_001 }, () => good[0]))).toEqual([
      400,
      'REQUEST_INVALID',
      'body: a list must have 1 to 1000 events; got 1001.',
    ])
    expect((await r.app.admin.events.list()).items).toEqual([])
    expect((await r.post('/v1/events', good, { key: r.publish })).body).toEqual({
      events: good.map(({ id }) => ({ id, kind: 'stored' })),
    })
    expect((await ran(r)).toSorted()).toEqual(['1', '2', '3'])
  })

  test('takes CloudEvents in all three modes', async () => {
    const r = await opened(store)
    const send = (body: unknown, headers: Record<string, string>): ReturnType<Rig['post']> =>
      r.post('/v1/events', body, { key: r.publish, headers })
    const structured = { 'content-type': 'application/cloudevents+json' }
    expect((await send(cloudEvent('a'), structured)).body).toMatchObject({ events: [{ kind: 'stored' }] })
    expect((await send(cloudEvent('a'), structured)).body).toMatchObject({ events: [{ kind: 'duplicate' }] })
    const batch = { 'content-type': 'application/cloudevents-batch+json; charset=utf-8' }
    expect((await send([cloudEvent('b'), cloudEvent('c')], batch)).body).toMatchObject({
      events: [{ kind: 'stored' }, { kind: 'stored' }],
    })
    const binary = {
      'content-type': 'text/plain',
      'ce-specversion': '1.0',
      'ce-id': 'd',
      'ce-source': '/s',
      'ce-type': 'paid',
    }
    expect((await send('"d"', binary)).body).toMatchObject({ events: [{ kind: 'stored' }] })
    expect((await send({ specversion: '1.0', id: 'e', source: '/s' }, structured)).body).toMatchObject({
      code: 'REQUEST_INVALID',
      detail: expect.stringContaining('type must be'),
    })
    expect((await send('a=b', { 'content-type': 'text/plain' })).body).toMatchObject({ code: 'BODY_NOT_JSON' })
    expect((await ran(r)).toSorted()).toEqual(['"a"', '"b"', '"c"', '"d"'])
    const { items } = await r.app.admin.events.list()
    expect(items.map(({ tenant, source }) => [tenant, source])).toEqual([
      ['', 'app'],
      ['acme', 'app'],
      ['acme', 'app'],
      ['acme', 'app'],
    ])
  })

  test('at delays the events, and to names their flows', async () => {
    const r = await opened(store)
    const key = r.publish
    await r.post(`/v1/events?at=${START + 60_000}`, { type: 'late', data: 1 }, { key })
    await r.post('/v1/events?to=g', { type: 'other', data: 2 }, { key })
    await r.post('/v1/events?to=f,g', { type: 'both', data: 3 }, { key })
    expect((await ran(r)).toSorted()).toEqual(['3', 'g 2', 'g 3'])
    await r.t.advance('2m')
    expect(r.seen.texts).toContain('1')
    const unknown = await r.post('/v1/events?to=nobody', { type: 'x' }, { key })
    expect([unknown.status, (unknown.body as { code: string }).code]).toEqual([400, 'EVENT_INVALID'])
  })

  test('a key with the role publish may do this and nothing else, and a key with the role read may not', async () => {
    const r = await opened(store)
    const refused = await r.post('/v1/events', { type: 'paid' }, { key: r.read })
    expect([refused.status, refused.body]).toMatchObject([
      403,
      {
        code: 'ROLE_TOO_LOW',
        detail: 'The key read has the role read, and this call needs the role publish or operate.',
      },
    ])
    for (const [method, path] of [
      ['GET', '/v1/events'],
      ['GET', '/v1/events/a'],
      ['GET', '/v1/stats'],
      ['GET', '/metrics'],
      ['GET', '/openapi.json'],
      ['POST', '/v1/flows/f/pause'],
      ['POST', '/v1/keys'],
      ['GET', '/v1/nowhere'],
    ] as const) {
      const answer = await r.call(method, path, { key: r.publish })
      expect([path, answer.status, (answer.body as { code: string }).code]).toEqual([path, 403, 'ROLE_TOO_LOW'])
    }
    const { items: before } = await r.app.admin.audit.list()
    expect((await r.post('/v1/events', { type: 'paid' }, { key: r.publish })).status).toBe(202)
    expect((await r.app.admin.audit.list()).items).toEqual(before)
    expect((await r.call('POST', '/v1/events', { body: { type: 'paid' } })).status).toBe(401)
  })
})

test('the first key cannot have the role publish', async () => {
  const r = await rig('memory:', () => {})
  await expect(r.app.admin.keys.create({ name: 'p', role: 'publish' })).rejects.toMatchObject({
    code: 'OPERATOR_KEY_REQUIRED',
  })
})
