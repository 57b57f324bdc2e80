// What cannot hold, or would be ignored, is refused in one message that names the option and the fix.
import { expect, it } from 'vitest'
import { makeLimit } from '../../src/limit/limit.ts'
import { failure, rig } from './rig.ts'

const good = { rate: 3, per: '1s' } as const
const refused = (message: string): unknown => ({
  name: 'SluiceError',
  code: 'CONFIG_INVALID',
  message: expect.stringContaining(message) as string,
})

it.each<[Record<string, unknown>, string]>([
  [{ rate: 0 }, 'limit("api").rate is 0; it is a whole number of at least 1'],
  [{ rate: 1.5 }, 'limit("api").rate is 1.5; it is a whole number'],
  [{ rate: Infinity }, 'limit("api").rate is Infinity;'],
  [{ rate: undefined }, 'limit("api").rate is undefined;'],
  [{ rate: '3' }, 'limit("api").rate is 3;'],
  [{ rate: Infinity, burst: 2 }, 'limit("api").rate is Infinity; it is a number above 0'],
  [{ rate: 0, burst: 2 }, 'limit("api").rate is 0; it is a number above 0'],
  [{ per: 0 }, 'limit("api").per is 0 ms; it is from \'100ms\' up'],
  [{ per: '99ms' }, 'limit("api").per is 99 ms; it is from'],
  [{ per: Infinity }, 'limit("api").per is Infinity ms;'],
  [{ per: 'soon' }, 'limit("api").per is "soon", not a duration'],
  [{ per: undefined }, 'limit("api").per is undefined, not a duration'],
  [{ burst: -1 }, 'limit("api").burst is -1; it is a whole number of at least 0'],
  [{ burst: 0.5 }, 'limit("api").burst is 0.5;'],
  [{ maxWait: -1 }, 'limit("api").maxWait is -1, not a duration'],
  [{ retries: -1 }, 'limit("api").retries is -1;'],
  [{ retries: Infinity }, 'limit("api").retries is Infinity;'],
  [{ retires: 2 }, 'limit("api").retires is no option; there are rate, per, burst, maxWait, retries.'],
])('M1 %j is refused when the limit is made', async (own, message) => {
  const t = await rig('memory')
  const make = (): unknown => makeLimit('api', { ...good, ...own }, t.process())
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
})

it('M1 a limit without a name, or a key that is none, is refused', async () => {
  const t = await rig('memory')
  expect(() => makeLimit('', good, t.process())).toThrow('has no name')
  expect(() => makeLimit('api', good, t.process()).per('')).toThrow('limit("api").per was given "";')
  expect(() => makeLimit('api', good, t.process()).per(undefined as never)).toThrow('.per was given undefined;')
})

it.each([undefined, null, 3, 'often'])('M1 a limit whose options are %j is refused', async (options) => {
  const t = await rig('memory')
  const make = (): unknown => makeLimit('api', options as never, t.process())
  const message = 'limit("api") has no options; say rate and per'
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
})

it('M1 a name with a slash is refused, since it could be that of a key of another limit', async () => {
  const t = await rig('memory')
  const make = (): unknown => makeLimit('a/b', good, t.process())
  const message = 'limit("a/b") has a slash in its name; limit("a").per("b") is called the same'
  expect(make).toThrow(expect.objectContaining(refused(message) as object))
  expect(makeLimit('a', good, t.process()).per('b/c').name).toBe('a/b/c')
})

it('M1 a bucket may fill slower than by one', async () => {
  const t = await rig('memory')
  const limit = makeLimit('api', { rate: 0.5, per: '1s', burst: 1, maxWait: Infinity }, t.process())
  await limit.run(() => undefined)
  expect(await t.until(limit.run(() => t.clock.monotonic()))).toBe(2_000)
})

it.each<[Record<string, unknown>, string]>([
  [
    { cost: 4 },
    'limit("api").run: cost is 4, above the rate of 3; make it cost less, or raise the rate of limit("api").',
  ],
  [{ cost: 0 }, 'limit("api").run: cost is 0; it is a whole number of at least 1'],
  [{ cost: 1.5 }, 'limit("api").run: cost is 1.5;'],
  [{ costs: 2 }, 'limit("api").run: costs is no option; there are cost, with, signal.'],
  [{ with: [undefined] }, 'limit("api").run: with has undefined, which is no limit of the same app'],
  [{ with: ['day'] }, 'limit("api").run: with has a string, which is no limit of the same app'],
  [{ with: 'day' }, 'limit("api").run: with is a string, not a list of limits'],
  [{ with: {} }, 'limit("api").run: with is an object, not a list of limits'],
])('M5 a call with %j is refused at once', async (options, message) => {
  const t = await rig('memory')
  const error = await failure(makeLimit('api', good, t.process()).run(() => 'made', options))
  expect(error).toMatchObject(refused(message) as object)
  expect(t.asked).toEqual([])
})

it('M5 a cost above the bucket, or above another of its limits, is refused at once', async () => {
  const t = await rig('memory')
  const parts = t.process()
  const bucket = makeLimit('bucket', { rate: 9, per: '1s', burst: 2 }, parts)
  const api = makeLimit('api', good, parts)
  const above = 'cost is 3, above the burst of 2; make it cost less, or raise the burst of limit("bucket").'
  expect(await failure(bucket.run(() => 'made', { cost: 3 }))).toMatchObject(refused(above) as object)
  expect(await failure(api.run(() => 'made', { cost: 3, with: [bucket] }))).toMatchObject(refused(above) as object)
})

it('M5 the same limit twice, or one of another app, is refused', async () => {
  const t = await rig('memory')
  const parts = t.process()
  const api = makeLimit('api', good, parts)
  const twin = makeLimit('api', good, parts)
  const stranger = makeLimit('other', good, t.process())
  expect(await failure(api.run(() => 'made', { with: [twin] }))).toMatchObject(
    refused('"api" is there twice') as object,
  )
  const error = await failure(api.run(() => 'made', { with: [stranger] }))
  expect(error).toMatchObject(refused('with has "other", which is no limit of the same app') as object)
})
