// Tests the proof of ownership of a URL: the echo of a signed challenge, or the CloudEvents handshake. Nothing else
// reaches the URL before.
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import type { DeliverySettings } from '../../src/deliver/options.ts'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber, type Answering, type Delivery } from './subscriber.ts'

const challengeIn = (body: string): string => (JSON.parse(body) as { data: { challenge: string } }).data.challenge
const echo: Answering = ({ body }) => ({ status: 200, body: JSON.stringify({ challenge: challengeIn(body) }) })
const echoAsText: Answering = ({ body }) => ({ status: 200, body: challengeIn(body) })
const leave = (headers: Readonly<Record<string, string>>): Answering => ({ status: 405, headers })

function asking(settings: DeliverySettings): Promise<Delivery> {
  return delivery({}, 'memory:', undefined, settings)
}

describe('a challenge', () => {
  it.each([echo, echoAsText])('that is echoed proves the endpoint; it is signed and comes first', async (answer) => {
    const to = await subscriber(answer)
    const { app, endpoint, send } = await asking({ proof: 'challenge' })
    const added = await endpoint({ url: to.url })
    expect(added).toMatchObject({ proof: 'proven' })
    expect(added).not.toHaveProperty('proofError')
    const [{ headers, body } = { headers: {}, body: '' }] = to.got
    expect(new Webhook(added.secret).verify(body, headers)).toMatchObject({
      type: 'endpoint.challenge',
      data: { challenge: expect.stringMatching(/^[\w-]{32}$/) },
    })
    await send(['a'])
    await to.reached(2)
    expect(to.got[1]?.ids).toEqual(['a'])
    expect(await app.endpoints.list()).toMatchObject([{ proof: 'proven' }])
  })

  it.each<readonly [string, Answering]>([
    ['did not echo', { status: 200 }],
    ['did not echo', { status: 200, body: JSON.stringify({ challenge: 'mine' }) }],
    ['did not echo', ({ body }) => ({ status: 200, body })],
    ['returned 500', ({ body }) => ({ status: 500, body: challengeIn(body) })],
    ['returned 302', { status: 302, headers: { location: '/other' } }],
  ])('that it %s does not prove it; nothing is posted until a later proof succeeds', async (text, answer) => {
    const to = await subscriber(answer, { status: 200 }, echo)
    const { app, endpoint, send } = await asking({ proof: 'challenge' })
    const added = await endpoint({ url: to.url })
    expect(added).toMatchObject({ proof: 'pending', proofError: expect.stringContaining(text) })
    const { id } = added
    await send(['a'])
    await expect(app.endpoints.test(id)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(app.publish({ type: 'version.new' }, { to: id })).rejects.toThrow('not proven')
    expect((await app.admin.lanes.list()).items).toEqual([])
    expect(await app.endpoints.prove(id)).toMatchObject({ proof: 'pending', proofError: expect.any(String) })
    expect(await app.endpoints.prove(id)).toMatchObject({ proof: 'proven' })
    await send(['b'])
    await to.reached(4)
    expect(to.got.map(({ ids }) => ids)).toEqual([[], [], [], ['b']])
  })

  it('is required before another url is stored', async () => {
    const [to, next] = [await subscriber(echo), await subscriber({ status: 404 }, echo)]
    const { app, endpoint } = await asking({ proof: 'challenge' })
    const { id } = await endpoint({ url: to.url })
    const changed = app.endpoints.update(id, { url: next.url })
    await expect(changed).rejects.toMatchObject({
      code: 'ENDPOINT_INVALID',
      message: expect.stringContaining('not proven'),
    })
    expect(await app.endpoints.get(id)).toMatchObject({ url: to.url, proof: 'proven' })
    expect(await app.endpoints.update(id, { url: next.url, name: 'Ada' })).toMatchObject({
      url: next.url,
      proof: 'proven',
    })
    expect(await app.endpoints.update(id, { name: 'Bob' })).toMatchObject({ name: 'Bob', proof: 'proven' })
    expect([to.got.length, next.got.length]).toEqual([1, 2])
  })

  it('is different each time', async () => {
    const to = await subscriber(echo, echo)
    const { app, endpoint } = await asking({ proof: 'challenge' })
    const { id } = await endpoint({ url: to.url })
    await app.endpoints.prove(id)
    expect(new Set(to.got.map(({ body }) => challengeIn(body))).size).toBe(2)
    expect(new Set(to.got.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  })
})

it('a proof in another process applies to the next event', async () => {
  const store = await openStore('memory:')
  const to = await subscriber({ status: 500 }, echo)
  const [one, other] = [
    await delivery({}, store, undefined, { proof: 'challenge' }),
    await delivery({}, store, undefined, { proof: 'challenge' }),
  ]
  const { id } = await one.endpoint({ url: to.url })
  await other.send(['a'])
  await one.app.endpoints.prove(id)
  await other.send(['b'])
  await to.reached(3)
  expect(to.got.map(({ ids }) => ids)).toEqual([[], [], ['b']])
})

it('waiting batches of an endpoint that must prove itself again wait for the proof', async () => {
  const store = await openStore('memory:')
  const to = await subscriber(echo, echo)
  const { app, endpoint, send } = await delivery({ window: { quiet: '1h' } }, store, undefined, { proof: 'challenge' })
  const { id } = await endpoint({ url: to.url })
  await send(['a'])
  const [doc] = (await store.readDocs({ kind: 'endpoint', ids: [id], after: '', n: 1 })).docs
  const body = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(doc?.body ?? []).toString()), proof: 'pending' }))
  await store.writeDocs({
    writes: [{ kind: 'endpoint', id, ifRev: doc?.rev ?? 0, body }],
    raiseRoutes: false,
    audit: undefined,
  })
  const held = app.once('lane.held')
  const again = app.once('run.deferred')
  await app.endpoints.trigger()
  expect(await held).toMatchObject({ reason: 'The endpoint is not proven.' })
  await again
  expect(to.got).toHaveLength(1)
  await app.endpoints.prove(id)
  await to.reached(3)
  expect(to.got.map(({ ids }) => ids)).toEqual([[], [], ['a']])
})

describe('the handshake of CloudEvents', () => {
  const settings = { proof: 'cloudevents', origin: 'hooks.example.com' } as const

  it.each(['hooks.example.com', 'Hooks.Example.com', '*'])(
    'allows deliveries through %s, with any status, and is named in each batch',
    async (allowed) => {
      const to = await subscriber(leave({ 'webhook-allowed-origin': allowed }))
      const { endpoint, send } = await asking(settings)
      expect(await endpoint({ url: to.url, headers: { 'x-team': 'a' } })).toMatchObject({ proof: 'proven', rate: null })
      await send(['a'])
      await to.reached(2)
      expect(
        to.got.map(({ method, headers }) => [method, headers['webhook-request-origin'], headers['x-team']]),
      ).toEqual([
        ['OPTIONS', 'hooks.example.com', 'a'],
        ['POST', 'hooks.example.com', 'a'],
      ])
      expect(to.got[0]?.headers).not.toHaveProperty('webhook-request-rate')
    },
  )

  it.each<readonly [string, Answering]>([
    ['WebHook-Allowed-Origin', { status: 200 }],
    ['other.example.com', leave({ 'webhook-allowed-origin': 'other.example.com' })],
    ['not hooks.example.com', leave({ 'webhook-allowed-origin': 'ooks.example.com' })],
  ])('is refused: %s', async (text, answer) => {
    const to = await subscriber(answer)
    const { endpoint, send } = await asking(settings)
    expect(await endpoint({ url: to.url })).toMatchObject({
      proof: 'pending',
      proofError: expect.stringContaining(text),
    })
    await send(['a'])
    expect(to.got).toHaveLength(1)
  })

  it.each<readonly [string | undefined, object]>([
    ['30', { proof: 'proven', rate: { rate: 30, per: '1m' } }],
    ['600', { proof: 'proven', rate: { rate: 2, per: '1s' } }],
    ['*', { proof: 'proven', rate: { rate: 2, per: '1s' } }],
    [undefined, { proof: 'pending', proofError: expect.stringContaining('Allowed-Rate') }],
    ['many', { proof: 'pending', proofError: expect.stringContaining('Allowed-Rate') }],
  ])('requests the rate, and applies %s', async (allowed, wanted) => {
    const rate = allowed === undefined ? {} : { 'webhook-allowed-rate': allowed }
    const to = await subscriber(leave({ 'webhook-allowed-origin': '*', ...rate }))
    const { endpoint } = await asking(settings)
    expect(await endpoint({ url: to.url, rate: { rate: 2, per: '1s' } })).toMatchObject(wanted)
    expect(to.got[0]?.headers['webhook-request-rate']).toBe('120')
  })

  it('applies a rate that was not requested', async () => {
    const to = await subscriber(leave({ 'webhook-allowed-origin': '*', 'webhook-allowed-rate': '7' }))
    const { endpoint } = await asking(settings)
    expect(await endpoint({ url: to.url })).toMatchObject({ rate: { rate: 7, per: '1m' } })
  })

  it('does not prove an unreachable endpoint', async () => {
    const { endpoint } = await asking(settings)
    const added = await endpoint({ url: 'http://127.0.0.1:1/hook' })
    expect(added).toMatchObject({ proof: 'pending', proofError: expect.any(String) })
  })
})

it('no proof is required by default', async () => {
  const to = await subscriber()
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: to.url })
  expect(await app.endpoints.get(id)).toMatchObject({ proof: 'none' })
  expect(await app.endpoints.prove(id)).toMatchObject({ proof: 'none' })
  expect(to.got).toEqual([])
  await expect(app.endpoints.prove('ep_nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

it('a pending endpoint is proven once the app requires no proof', async () => {
  const store = await openStore('memory:')
  const to = await subscriber({ status: 500 })
  const before = await delivery({}, store, undefined, { proof: 'challenge' })
  const { id } = await before.endpoint({ url: to.url })
  await before.app.stop()
  const { app, send } = await delivery({}, store)
  await send(['a'])
  expect(await app.endpoints.get(id)).toMatchObject({ proof: 'pending' })
  expect(await app.endpoints.prove(id)).toMatchObject({ proof: 'none' })
  await send(['b'])
  await to.reached(2)
  expect(to.got.map(({ ids }) => ids)).toEqual([[], ['b']])
})

it.each([
  { proof: 'ping' },
  { proof: 'cloudevents' },
  { proof: 'cloudevents', origin: 'https://hooks.example.com' },
  { proof: 'cloudevents', origin: 'evil\r\nx: y' },
  { proof: 'challenge', origin: 'hooks.example.com' },
])('%o is rejected', (settings) => {
  expect(() => new Sluice({ store: 'memory:', delivery: settings as never })).toThrow(/delivery\.(?:proof|origin)/)
})
