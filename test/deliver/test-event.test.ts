// Tests the test event: sent to one endpoint alone, signed, reported, and without a trace in lanes or health.
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { delivery, subscriber } from './subscriber.ts'

it('reaches this endpoint alone, signed, even if its filter does not match', async () => {
  const [to, other] = [await subscriber({ status: 201, body: 'got it' }), await subscriber()]
  const { app, endpoint } = await delivery()
  const { id, secret } = await endpoint({ url: to.url, eventFilter: ['nothing'], tenant: 't' })
  await endpoint({ url: other.url })
  const result = await app.endpoints.test(id)
  expect(result).toMatchObject({ delivered: true, status: 201, answer: 'got it', error: '', ms: expect.any(Number) })
  const [{ headers, body, ids } = { headers: {}, body: '', ids: [] }] = to.got
  expect(ids).toEqual([result.event])
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({
    type: 'endpoint.test',
    data: { events: [{ type: 'endpoint.test', source: 'sluice', subject: id, data: { endpoint: id } }] },
  })
  expect(other.got).toEqual([])
  expect((await app.admin.lanes.list()).items).toEqual([])
  expect((await app.admin.events.list()).items).toEqual([])
})

it('has the given data, in the form of the endpoint', async () => {
  const to = await subscriber()
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: to.url, form: 'flat' })
  expect(await app.endpoints.test(id, { data: { alert: 'a', count: 2 } })).toMatchObject({ delivered: true })
  expect(to.got[0]?.body).toBe('{"alert":"a","count":2}')
  await expect(app.endpoints.test(id, { data: 'a' as never })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})

it('returns what failed, without an effect on health', async () => {
  const to = await subscriber({ status: 500, body: 'no disk' }, { status: 410 }, { status: 200 })
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: to.url })
  expect(await app.endpoints.test(id)).toMatchObject({
    delivered: false,
    status: 500,
    answer: 'no disk',
    error: 'The endpoint returned 500.',
  })
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: false, status: 410 })
  expect((await app.endpoints.get(id))?.health).toMatchObject({ status: 'up', breaker: 'closed', attempts: 0 })
  await app.endpoints.pause(id)
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: true })
})

it('reaches no forbidden address, and does not reveal the reason', async () => {
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: 'https://localhost.example.com:1/' })
  const result = await app.endpoints.test(id)
  expect(result).toMatchObject({ delivered: false })
  expect(result).not.toHaveProperty('status')
})

it('an unknown endpoint is NOT_FOUND', async () => {
  const { app } = await delivery()
  await expect(app.endpoints.test('ep_nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

it('uses the deadline and the user agent of the options', async () => {
  const to = await subscriber()
  const { app, endpoint } = await delivery({}, 'memory:', undefined, { deadline: '20s', userAgent: 'Shop/1' })
  const { id } = await endpoint({ url: to.url })
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: true })
  expect(to.got[0]?.headers['user-agent']).toBe('Shop/1')
})
