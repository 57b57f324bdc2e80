// Tests the replay of stored events to one endpoint: it reaches no other, can be cancelled, and resumes where it stopped.
import { expect, it } from 'vitest'
import { delivery, subscriber, type Subscriber } from './subscriber.ts'

const count = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n).padStart(4, '0'))

const received = (to: Subscriber, from = 0): readonly string[] => to.got.slice(from).flatMap(({ ids }) => ids)

it('D6 a replay to one endpoint reaches no other, and keeps the order', async () => {
  const [to, other] = [await subscriber(), await subscriber()]
  const { app, endpoint, send } = await delivery()
  const { id } = await endpoint({ url: to.url })
  await endpoint({ url: other.url })
  await send(count(1, 250))
  await to.reached(1)
  await other.reached(1)
  const { count: found, replay = '' } = await app.endpoints.replay(id, { from: 'beginning', rate: 10_000 })
  expect(found).toBe(250)
  await expect.poll(() => received(to, 1).length).toBe(250)
  expect(received(to, 1)).toEqual(count(1, 250))
  await expect.poll(async () => (await app.admin.replays.show(replay))?.state).toBe('done')
  expect(await app.admin.replays.show(replay)).toMatchObject({ endpoint: id, placed: 250, scanned: 250 })
  expect(other.got).toHaveLength(1)
  expect(new Set(to.got.slice(1).map(({ headers }) => headers['webhook-replay']))).toEqual(new Set([replay]))
})

it('a cancelled replay stops with what was placed, says how far it came, and misses nothing when it is resumed', async () => {
  const [begun, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = async (): Promise<{ status: number }> => {
    begun.resolve()
    await open.promise
    return { status: 200 }
  }
  const to = await subscriber({ status: 200 }, slow)
  const { app, endpoint, send } = await delivery()
  const { id } = await endpoint({ url: to.url })
  await send(count(1, 250))
  await to.reached(1)
  const { replay = '' } = await app.endpoints.replay(id, { from: 'beginning' })
  await begun.promise
  await expect(app.endpoints.replay(id, { from: 'beginning' })).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await app.admin.replays.cancel(replay)).toBe('ok')
  open.resolve()
  await expect.poll(async () => app.admin.lanes.get('versions', id)).toBeUndefined()
  expect(received(to, 1)).toEqual(count(1, 100))
  expect(await app.admin.replays.show(replay)).toMatchObject({
    state: 'cancelled',
    found: 250,
    scanned: 100,
    placed: 100,
  })
  expect((await app.admin.replays.show(replay))?.reached).toBeGreaterThan(0)
  expect(await app.admin.replays.resume(replay)).toBe('ok')
  expect(await app.admin.replays.resume(replay)).toBe('already')
  await expect.poll(() => received(to, 1).length).toBe(250)
  expect(received(to, 1)).toEqual(count(1, 250))
  await expect.poll(async () => app.admin.replays.resume(replay)).toBe('already')
  expect(await app.admin.replays.resume('unknown')).toBe('missing')
})

it('a replay to one endpoint keeps to a type and to the filter of the endpoint', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  await send(['a', 'b'], { tenant: 'acme' })
  await send(['beta'], { tenant: 'acme', type: 'version.beta' })
  await send(['foreign'], { tenant: 'other' })
  const { id } = await endpoint({ url: to.url, tenant: 'acme', where: { 'data.id': { ne: 'b' } } })
  expect(await app.endpoints.replay(id, { type: 'version.new' })).toMatchObject({ count: 2 })
  await expect.poll(() => received(to)).toEqual(['a'])
})

it('dead letters of an endpoint are retried by type and time', async () => {
  const to = await subscriber({ status: 500 }, { status: 500 })
  const { app, endpoint, send } = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } })
  const { id } = await endpoint({ url: to.url })
  await send(['a'])
  await send(['beta'], { type: 'version.beta' })
  await expect.poll(() => app.admin.deadLetters.count()).toBe(2)
  expect(await app.endpoints.replay(id, { dead: true, to: 0 })).toEqual({ count: 0 })
  expect(await app.endpoints.replay(id, { dead: true, type: 'version.beta' })).toEqual({ count: 1 })
  await expect.poll(() => received(to).at(-1)).toBe('beta')
  expect(await app.endpoints.replay(id)).toEqual({ count: 1 })
  await expect.poll(() => received(to).at(-1)).toBe('a')
})

it('rejects a replay of nothing, and options that do not go together', async () => {
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: 'https://example.com/' })
  await expect(app.endpoints.replay(id, { dead: false })).rejects.toThrow(/from, to or type must be given/)
  await expect(app.endpoints.replay(id, { deadLetter: 'l', type: 'x' })).rejects.toThrow(
    /deadLetter must be the only option/,
  )
  await expect(app.endpoints.replay(id, { dead: true, rate: 5 })).rejects.toThrow(/rate and per/)
  await expect(app.endpoints.replay(id, { from: 'soon' as 'beginning' })).rejects.toThrow(/from must be a Date/)
  await expect(app.endpoints.replay('ep_none', { type: 'x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
