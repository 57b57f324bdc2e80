// Options that are impossible, or would have no effect, are rejected with one message that names the option and the fix.
import { expect, it } from 'vitest'
import { createLimit } from '../../src/limit/limit.ts'
import { failure, rig } from './rig.ts'

const good = { rate: 3, per: '1s' } as const
const refused = (message: string): unknown => ({
  name: 'SluiceError',
  code: 'CONFIG_INVALID',
  message: expect.stringContaining(message) as string,
})

it.each<[Record<string, unknown>, string]>([
  [{ rate: 0 }, 'limit("api").rate must be a whole number of at least 1 (for fewer calls, raise per); got 0.'],
  [{ rate: 1.5 }, 'limit("api").rate must be a whole number'],
  [
    { rate: Infinity },
    'limit("api").rate must be a whole number of at least 1 (for fewer calls, raise per); got Infinity.',
  ],
  [
    { rate: undefined },
    'limit("api").rate must be a whole number of at least 1 (for fewer calls, raise per); got undefined.',
  ],
  [{ rate: '3' }, 'limit("api").rate must be a whole number of at least 1 (for fewer calls, raise per); got 3.'],
  [{ rate: Infinity, burst: 2 }, 'limit("api").rate must be a number above 0; got Infinity.'],
  [{ rate: 0, burst: 2 }, 'limit("api").rate must be a number above 0; got 0.'],
  [{ per: 0 }, `limit("api").per must be finite and at least '100ms'; got 0 ms.`],
  [{ per: '99ms' }, `limit("api").per must be finite and at least '100ms'; got 99 ms.`],
  [{ per: Infinity }, `limit("api").per must be finite and at least '100ms'; got Infinity ms.`],
  [{ per: 'soon' }, `limit("api").per must be a duration like '250ms', '10s' or '7d'; got "soon".`],
  [{ per: undefined }, `limit("api").per must be a duration like '250ms', '10s' or '7d'; got undefined.`],
  [{ burst: -1 }, 'limit("api").burst must be a whole number of at least 0; got -1.'],
  [{ burst: 0.5 }, 'limit("api").burst must be a whole number of at least 0; got 0.5.'],
  [{ maxWait: -1 }, `limit("api").maxWait must be a duration like '250ms', '10s' or '7d'; got -1.`],
  [{ retries: -1 }, 'limit("api").retries must be a whole number of at least 0; got -1.'],
  [{ retries: Infinity }, 'limit("api").retries must be a whole number of at least 0; got Infinity.'],
  [
    { retires: 2 },
    'limit("api").retires is not an option. Did you mean retries? The options are rate, per, burst, maxWait, retries.',
  ],
])('M1 %j is refused when the limit is made', async (own, message) => {
  const t = await rig('memory')
  const make = (): unknown => createLimit('api', { ...good, ...own }, t.process())
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
})

it('M1 a limit without a name, or with an invalid key, is rejected', async () => {
  const t = await rig('memory')
  expect(() => createLimit('', good, t.process())).toThrow('must have a name')
  expect(() => createLimit('api', good, t.process()).per('')).toThrow(
    'limit("api").per: the key must be a non-empty string; got "".',
  )
  expect(() => createLimit('api', good, t.process()).per(undefined as never)).toThrow('got undefined.')
})

it.each([undefined, null, 3, 'often'])('M1 a limit with the options %j is rejected', async (options) => {
  const t = await rig('memory')
  const make = (): unknown => createLimit('api', options as never, t.process())
  const message = 'limit("api") must have options with rate and per'
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
})

it('M1 a name with a slash is rejected, because it could equal that of a key of another limit', async () => {
  const t = await rig('memory')
  const make = (): unknown => createLimit('a/b', good, t.process())
  const message = 'limit("a/b") must not have a slash in its name: limit("a").per("b") has the same name'
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
  expect(createLimit('a', good, t.process()).per('b/c').name).toBe('a/b/c')
})

it('M1 a bucket may fill slower than one per period', async () => {
  const t = await rig('memory')
  const limit = createLimit('api', { rate: 0.5, per: '1s', burst: 1, maxWait: Infinity }, t.process())
  await limit.run(() => undefined)
  expect(await t.until(limit.run(() => t.clock.monotonic()))).toBe(2_000)
})

it.each<[Record<string, unknown>, string]>([
  [
    { cost: 4 },
    'limit("api").run: cost must be at most the rate of 3; got 4. Lower the cost, or raise the rate of limit("api").',
  ],
  [{ cost: 0 }, 'limit("api").run: cost must be a whole number of at least 1; got 0.'],
  [{ cost: 1.5 }, 'limit("api").run: cost must be a whole number of at least 1; got 1.5.'],
  [{ costs: 2 }, 'limit("api").run: costs is not an option. Did you mean cost? The options are cost, with, signal.'],
  [{ with: [undefined] }, 'limit("api").run: with must contain limits of the same app; got nothing.'],
  [{ with: ['day'] }, 'limit("api").run: with must contain limits of the same app; got text.'],
  [{ with: 'day' }, 'limit("api").run: with must be a list of limits; got text.'],
  [{ with: {} }, 'limit("api").run: with must be a list of limits; got an object.'],
])('M5 a call with %j is refused at once', async (options, message) => {
  const t = await rig('memory')
  const error = await failure(createLimit('api', good, t.process()).run(() => 'made', options))
  expect(error).toMatchObject(refused(message) as object)
  expect(t.asked).toEqual([])
})

it('M5 a cost above the bucket, or above another of its limits, is rejected at once', async () => {
  const t = await rig('memory')
  const parts = t.process()
  const bucket = createLimit('bucket', { rate: 9, per: '1s', burst: 2 }, parts)
  const api = createLimit('api', good, parts)
  const above = 'cost must be at most the burst of 2; got 3. Lower the cost, or raise the burst of limit("bucket").'
  expect(await failure(bucket.run(() => 'made', { cost: 3 }))).toMatchObject(refused(above) as object)
  expect(await failure(api.run(() => 'made', { cost: 3, with: [bucket] }))).toMatchObject(refused(above) as object)
})

it('M5 the same limit twice, or a limit of another app, is rejected', async () => {
  const t = await rig('memory')
  const parts = t.process()
  const api = createLimit('api', good, parts)
  const twin = createLimit('api', good, parts)
  const stranger = createLimit('other', good, t.process())
  expect(await failure(api.run(() => 'made', { with: [twin] }))).toMatchObject(
    refused('"api" must occur only once') as object,
  )
  expect(() => api.with(twin)).toThrow('limit("api").with: "api" must occur only once')
  expect(() => api.with(stranger)).toThrow('limit("api").with: with must contain limits of the same app; got "other".')
  expect(() => api.with('other' as never)).toThrow(
    'limit("api").with: with must contain limits of the same app; got text.',
  )
  const error = await failure(api.run(() => 'made', { with: [stranger] }))
  expect(error).toMatchObject(refused('with must contain limits of the same app; got "other".') as object)
})
