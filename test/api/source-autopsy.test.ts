// Tests what operators see of sources: what they received, why a request was refused, and a signed sample request.
import { describe, expect, test } from 'vitest'
import type { SampleRequest, SourceActivity } from '../../src/admin/source-activity.ts'
import type { RefusedRequest } from '../../src/receive/refused-requests.ts'
import { bearer, github, hmac, standardWebhooks, stripe, unverified } from '../../src/sources/index.ts'
import { computeMac, formatTimedSignature } from '../../src/sources/signature.ts'
import { rig, START, STORES, type Rig } from './rig.ts'

const SECRET = 'whsec_the-secret-of-stripe'
const OTHER = 'a-secret-of-somebody-else'

const opened = (store: string): Promise<Rig> =>
  rig(store, (app) => {
    app.source('pay', stripe({ secret: [SECRET, 'the-old-secret-of-stripe'] }))
    app.source('std', standardWebhooks({ secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}` }))
    app.source('code', github({ secret: 'github-secret-0123456789' }))
    app.source('shop', bearer({ secret: 'shop-token-0123456789', type: () => 'order' }))
    app.source('open', unverified({ verify: 'none', type: () => 'x' }))
    app.source('own', hmac({ secret: 'own-secret-0123456789', header: 'x-sig', timestamp: 'x-time', type: () => 'x' }))
  })

async function post(
  r: Rig,
  path: string,
  headers: Record<string, string>,
  body = '{"id":"evt_1","type":"paid"}',
): Promise<number> {
  const request = new Request(`http://hooks.test${path}`, { method: 'POST', headers, body })
  return (await r.app.fetch(request)).status
}

type Shown = RefusedRequest & {
  readonly checks: readonly { readonly step: string; readonly state: string; readonly text: string }[]
}

const refusedOf = async (r: Rig, source: string): Promise<Shown> =>
  ((await r.get(`/v1/sources/${source}/refused`)).body as { items: readonly [Shown] }).items[0]
const failedAt = ({ checks }: Shown): readonly unknown[] => {
  const at = checks.findIndex(({ state }) => state === 'failed')
  expect(checks.slice(0, at).every(({ state }) => state === 'passed')).toBe(true)
  expect(checks.slice(at + 1).every(({ state }) => state === 'skipped')).toBe(true)
  return [checks[at]?.step, checks[at]?.text !== '']
}

describe.each(STORES)('the autopsy of a refused request on %s', (store) => {
  test('names the header, what was signed, and how many secrets were tried', async () => {
    const r = await opened(store)
    const body = '{"id":"evt_1","type":"paid"}'
    const seconds = String(START / 1_000)
    expect(
      await post(r, '/in/pay', { 'stripe-signature': formatTimedSignature(OTHER, seconds, Buffer.from(body)) }),
    ).toBe(401)
    const refused = await refusedOf(r, 'pay')
    expect(failedAt(refused)).toEqual(['signature', true])
    expect(refused.autopsy).toEqual({
      header: 'stripe-signature',
      given: computeMac(OTHER, [`${seconds}.`, body], { algorithm: 'sha256', encoding: 'hex' }),
      signedParts: [`"${seconds}."`, `the body, ${body.length} bytes`],
      signedBytes: seconds.length + 1 + body.length,
      secretsTried: 2,
    })
  })

  test('shows the id and the time of Standard Webhooks as they were signed', async () => {
    const r = await opened(store)
    const body = '{"type":"paid","data":{}}'
    const seconds = String(START / 1_000)
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': 'v1,AAAA' }
    expect(await post(r, '/in/std', headers, body)).toBe(401)
    expect((await refusedOf(r, 'std')).autopsy).toMatchObject({
      header: 'webhook-signature',
      signedParts: [`"msg_1.${seconds}."`, `the body, ${body.length} bytes`],
    })
  })

  test('says how far the clocks are apart, and which header is missing', async () => {
    const r = await opened(store)
    const body = '{"id":"evt_1","type":"paid"}'
    const old = String(START / 1_000 - 600)
    await post(r, '/in/pay', { 'stripe-signature': formatTimedSignature(SECRET, old, Buffer.from(body)) })
    expect(failedAt(await refusedOf(r, 'pay'))).toEqual(['time', true])
    expect((await refusedOf(r, 'pay')).autopsy).toMatchObject({ skewMs: 600_000 })
    await post(r, '/in/code', {})
    expect(failedAt(await refusedOf(r, 'code'))).toEqual(['header', true])
    expect((await refusedOf(r, 'code')).autopsy).toEqual({ header: 'x-hub-signature-256', secretsTried: 0 })
  })

  test('a credential has no autopsy beyond its code, and no response contains a secret', async () => {
    const r = await opened(store)
    await post(r, '/in/shop', { authorization: 'Bearer shop-token-0123456789x' })
    await post(r, '/in/pay', { 'stripe-signature': `t=1,v1=${SECRET}` })
    for (const name of ['shop', 'pay']) {
      const refused = await refusedOf(r, name)
      const text = JSON.stringify(refused)
      for (const secret of [SECRET, 'shop-token-0123456789']) expect(text).not.toContain(secret)
      expect(refused.autopsy).not.toHaveProperty('given')
    }
  })

  test('an accepted request leaves nothing, and a request to no source failed at its path', async () => {
    const r = await opened(store)
    expect(await post(r, '/in/nothing', {})).toBe(404)
    expect(failedAt(await refusedOf(r, '-'))).toEqual(['path', true])
    expect(await refusedOf(r, '-')).not.toHaveProperty('autopsy')
    expect(await refusedOf(r, 'pay')).toBeUndefined()
  })
})

describe.each(STORES)('the sources on %s', (store) => {
  test('show what they received and refused within the hour', async () => {
    const r = await opened(store)
    const list = async (): Promise<readonly SourceActivity[]> =>
      ((await r.get('/v1/sources')).body as { items: never }).items
    await post(r, '/in/open', {})
    await post(r, '/in/code', {})
    await post(r, '/in/code', { 'x-hub-signature-256': 'sha256=00' })
    await r.t.advance('5s')
    const find = async (name: string): Promise<SourceActivity | undefined> =>
      (await list()).find((one) => one.name === name)
    expect(await find('open')).toMatchObject({
      verified: false,
      receivedHour: 1,
      refusedHour: 0,
      // The beginning of the minute.
      lastReceived: START,
    })
    expect(await find('code')).toMatchObject({
      verified: true,
      receivedHour: 0,
      refusedHour: 2,
      byReason: { SIGNATURE_MISSING: 1, SIGNATURE_WRONG: 1 },
    })
    expect(await find('code')).not.toHaveProperty('lastReceived')
    await r.t.advance('2h')
    expect(await find('open')).toMatchObject({ receivedHour: 0 })
    expect(await find('code')).toMatchObject({ refusedHour: 0, byReason: {} })
  })

  test.each([['pay'], ['code'], ['own'], ['open']])('a sample of %s is accepted', async (name) => {
    const r = await opened(store)
    const { body } = await r.post(`/v1/sources/${name}/sample`, { origin: 'http://hooks.test' })
    const sample = body as SampleRequest
    const request = { method: sample.method, headers: sample.headers, body: Buffer.from(sample.body64, 'base64') }
    expect((await r.app.fetch(new Request(sample.url, request))).status).toBe(202)
    expect(sample.curl).toContain(`curl -X POST 'http://hooks.test/in/${name}'`)
    expect(JSON.stringify(body)).not.toContain(SECRET)
    expect((await r.app.admin.audit.list()).items[0]?.what).toContain(`sign a test request to the source ${name}`)
  })

  test('a scheme that sends its secret has no sample, and neither has an unknown source', async () => {
    const r = await opened(store)
    expect(await r.post('/v1/sources/shop/sample')).toMatchObject({
      status: 409,
      body: { fix: expect.stringContaining('sluice send shop') },
    })
    expect((await r.post('/v1/sources/nothing/sample')).status).toBe(404)
    expect((await r.post('/v1/sources/pay/sample', { origin: 'javascript:alert(1)' })).status).toBe(400)
  })
})
