// R4: the rate of requests of an address or a source, and the number of addresses that are remembered.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toNetwork, RequestRateLimiter } from '../../src/receive/rate.ts'
import { github } from '../../src/sources/github.ts'
import { unverified } from '../../src/sources/credentials.ts'
import { garmin } from '../../src/sources/garmin.ts'
import { AT_GITHUB, githubHook, opened, problemOf, SECRET, withGithub } from './scene.ts'

const REMEMBERED = 20_000

describe('a rate', () => {
  it('allows at most twice its number in any window, and everything below it', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 8 }), (all, most) => {
        const rate = new RequestRateLimiter(most, 1_000)
        let now = 0
        const came = all.map((gap) => (now += gap))
        const taken = came.filter((at) => rate.count('a', at) === undefined)
        for (const from of taken) {
          expect(taken.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(2 * most)
        }
        expect(taken.slice(0, most)).toEqual(came.slice(0, most))
      }),
    )
  })

  it('allows a sender that comes back after Retry-After, which is no earlier than sensible', () => {
    const history = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 8 }), (gaps, most) => {
        const rate = new RequestRateLimiter(most, 1_000)
        let now = 0
        for (const gap of gaps) {
          const after = rate.count('a', (now += gap))
          if (after === undefined) continue
          expect(after).toBeGreaterThan(0)
          expect(after).toBeLessThanOrEqual(1_002)
          if (after > 3) expect(rate.count('a', now + after - 3)).toBeDefined()
          expect(rate.count('a', (now += after))).toBeUndefined()
        }
      }),
    )
  })

  it('slides: late requests of one window count in the next one, less and less', () => {
    const rate = new RequestRateLimiter(10, 1_000)
    const taken = (at: number): number =>
      Array.from({ length: 20 }, () => rate.count('a', at)).filter((one) => one === undefined).length
    expect([taken(0), taken(999)]).toEqual([10, 0])
    // A tenth of the window later there is room for a tenth of the rate, and so on.
    expect([taken(1_001), taken(1_101), taken(1_501)]).toEqual([1, 1, 4])
  })

  it('counts each address by itself', () => {
    const rate = new RequestRateLimiter(1, 1_000)
    expect(rate.count('a', 0)).toBeUndefined()
    expect(rate.count('b', 0)).toBeUndefined()
    expect(rate.count('a', 0)).toBe(1_001)
  })

  it('does not apply if it is Infinity', () => {
    const rate = new RequestRateLimiter(Infinity, 1_000)
    expect(Array.from({ length: 1_000 }, () => rate.count('a', 0)).every((one) => one === undefined)).toBe(true)
  })

  it('remembers 20,000 addresses, and forgets the one that was idle longest', () => {
    const rate = new RequestRateLimiter(1, 1_000_000)
    rate.count('first', 0)
    rate.count('second', 0)
    for (let n = 0; n < REMEMBERED - 2; n++) rate.count(`n${n}`, 1)
    // A rejected address is still remembered.
    expect(rate.count('first', 2)).toBeDefined()
    rate.count('one more', 3)
    expect(rate.count('first', 4)).toBeDefined()
    expect(rate.count('second', 4)).toBeUndefined()
  })
})

describe('the network of an address', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:0DB8:0001:0000::9', '2001:db8:1:0'],
    ['2001:db8::', '2001:db8:0:0'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('%s is %s', (address, network) => {
    expect(toNetwork(address)).toBe(network)
  })
})

describe('an app', () => {
  it('responds with 429 and Retry-After, and accepts requests again afterwards', async () => {
    const { app, clock } = await opened(withGithub, { addressRate: { rate: 3, per: '1m' } })
    const send = (delivery: string, address: string): Promise<Response> =>
      app.fetch(githubHook('{}', { delivery }), { address })
    for (const delivery of ['1', '2', '3']) expect((await send(delivery, '2001:db8::1')).status).toBe(202)
    const refused = await send('4', '2001:db8::2')
    expect(refused.status).toBe(429)
    expect((await problemOf(refused)).code).toBe('TOO_MANY_REQUESTS')
    expect((await send('5', '2001:db9::1')).status).toBe(202)
    clock.advance(Number(refused.headers.get('retry-after')) * 1_000)
    expect((await send('4', '2001:db8::2')).status).toBe(202)
  })

  it('counts requests to unknown sources too', async () => {
    const { app } = await opened(withGithub, { addressRate: { rate: 2, per: '1m' } })
    const look = (path: string): Promise<Response> => app.fetch(new Request(`http://hooks.test/in/${path}`))
    expect((await look('a')).status).toBe(404)
    expect((await look('b')).status).toBe(404)
    expect((await look('c')).status).toBe(429)
  })

  it('reads nothing of a request whose address has sent too much', async () => {
    const { app } = await opened(withGithub, { addressRate: { rate: 1, per: '1m' } })
    await app.fetch(githubHook('{}'))
    const request = new Request(AT_GITHUB, { method: 'POST', body: 'unread' })
    expect([(await app.fetch(request)).status, request.bodyUsed]).toEqual([429, false])
  })

  it('counts a source over all addresses, but only requests that proved themselves', async () => {
    const rate = { rate: 2, per: '10s' } as const
    const { app } = await opened((one) => one.source('github', github({ secret: SECRET }), { rate }))
    const send = async (n: number, secret = SECRET): Promise<number> =>
      (await app.fetch(githubHook('{}', { delivery: `${n}`, secret }), { address: `192.0.2.${n}` })).status
    // Strangers do not keep the true sender out, before and after there is no room for it.
    for (const n of [1, 2, 3]) expect(await send(n, 'guessed')).toBe(401)
    expect([await send(4), await send(5), await send(6)]).toEqual([202, 202, 429])
    expect(await send(7, 'guessed')).toBe(401)
  })

  it('counts all requests to a source that asks for no proof, and reads nothing of what it refuses', async () => {
    const rate = { rate: 1, per: '10s' } as const
    const { app } = await opened((one) => one.source('open', unverified({ verify: 'none' }), { rate }))
    const [taken, refused] = [1, 2].map(() => new Request('http://hooks.test/in/open', { method: 'POST', body: '{}' }))
    expect([(await app.fetch(taken as Request)).status, taken?.bodyUsed]).toEqual([202, true])
    expect([(await app.fetch(refused as Request)).status, refused?.bodyUsed]).toEqual([429, false])
  })

  it('counts each subject by itself: who is beyond the rate keeps no other one out', async () => {
    const subjectRate = { rate: 2, per: '10s' } as const
    const { app, clock } = await opened((one) => one.source('garmin', garmin({ clientId: SECRET }), { subjectRate }))
    let n = 0
    const send = (...people: readonly string[]): Promise<Response> => {
      const items = people.map((userId) => ({ userId, summaryId: `${n++}` }))
      const headers = { 'garmin-client-id': SECRET, 'content-type': 'application/json' }
      const body = JSON.stringify({ dailies: items })
      return app.fetch(new Request('http://hooks.test/in/garmin', { method: 'POST', headers, body }))
    }
    const statuses = async (...people: readonly string[]): Promise<number> => (await send(...people)).status
    // Several items of one person in a request count once.
    expect([await statuses('ada', 'ada', 'ada'), await statuses('ada'), await statuses('ada')]).toEqual([200, 200, 429])
    expect([await statuses('ben'), await statuses('ben', 'ada')]).toEqual([200, 429])
    const refused = await send('ada')
    expect((await problemOf(refused)).code).toBe('TOO_MANY_REQUESTS')
    clock.advance(Number(refused.headers.get('retry-after')) * 1_000)
    expect(await statuses('ada')).toBe(200)
  })

  it('counts all senders as one if their addresses are unknown', async () => {
    const { app } = await opened(withGithub, { addressRate: { rate: 1, per: '1m' } })
    expect((await app.fetch(githubHook('{}'))).status).toBe(202)
    expect((await app.fetch(githubHook('{}', { delivery: 'd2' }))).status).toBe(429)
  })
})
