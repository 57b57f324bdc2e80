// Tests the history of a new endpoint: stored events first, then live ones, each once and in order.
import { expect, it } from 'vitest'
import { delivery, subscriber, type Subscriber } from './subscriber.ts'

const count = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n).padStart(4, '0'))

const received = (to: Subscriber): readonly string[] => to.got.flatMap(({ ids }) => ids)

const echo = ({ body }: { readonly body: string }): { status: number; body: string } => ({
  status: 200,
  body: JSON.stringify({ challenge: (JSON.parse(body) as { data: { challenge?: string } }).data.challenge }),
})

it('L16 a new endpoint gets the stored events in order, and then the live ones', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  for (const id of count(1, 250)) await send([id])
  const made = await endpoint({ url: to.url, from: 'beginning' })
  expect(made.history).toMatchObject({ from: 0 })
  for (const id of count(251, 300)) await send([id])
  await expect.poll(() => received(to).length).toBe(300)
  expect(received(to)).toEqual(count(1, 300))
  await expect.poll(async () => (await app.endpoints.get(made.id))?.history).toBeUndefined()
  await send(['live'])
  await expect.poll(() => received(to).at(-1)).toBe('live')
  expect(await app.admin.replays.show(made.history?.replay ?? '')).toMatchObject({ state: 'done', placed: 250 })
})

it('live events wait for a history that the endpoint does not accept yet', async () => {
  const to = await subscriber({ status: 500 }, { status: 500 })
  const { app, endpoint, send } = await delivery({ retry: ['50ms', '50ms', '50ms'] })
  await send(count(1, 3))
  await endpoint({ url: to.url, from: 'beginning' })
  await send(['live'])
  await expect.poll(() => received(to)).toContain('live')
  expect(to.got.map(({ ids }) => ids)).toEqual([count(1, 3), count(1, 3), count(1, 3), ['live']])
  expect(await app.admin.deadLetters.count()).toBe(0)
})

it('a history begins at a time, and has what the filters and the tenant of the endpoint let through', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  await send(['early'], { tenant: 'acme' })
  const early = (await app.admin.events.list({})).items[0]?.arrived ?? 0
  await expect.poll(() => Date.now()).toBeGreaterThan(early)
  const from = new Date()
  await send(['other'], { tenant: 'other' })
  await send(['beta'], { tenant: 'acme', type: 'version.beta' })
  await send(['mine'], { tenant: 'acme' })
  await endpoint({ url: to.url, tenant: 'acme', eventFilter: ['version.new'], from })
  await send(['live'], { tenant: 'acme' })
  await expect.poll(() => received(to)).toEqual(['mine', 'live'])
})

it('a history reaches no other endpoint, and not the lanes of flows', async () => {
  const [old, to] = [await subscriber(), await subscriber()]
  const { endpoint, send } = await delivery()
  await endpoint({ url: old.url })
  await send(count(1, 5))
  await old.reached(1)
  await endpoint({ url: to.url, from: 'beginning' })
  await expect.poll(() => received(to)).toEqual(count(1, 5))
  expect(received(old)).toEqual(count(1, 5))
})

it('the defaults of a delivery say where the history of its endpoints begins', async () => {
  const [to, late] = [await subscriber(), await subscriber()]
  const { endpoint, send } = await delivery({ defaults: { from: 'beginning' } })
  await send(['a'])
  await endpoint({ url: to.url })
  await expect.poll(() => received(to)).toEqual(['a'])
  await endpoint({ url: late.url, from: 'now' })
  await send(['b'])
  await expect.poll(() => received(late)).toEqual(['b'])
})

it('neither trigger nor resume nor run-now lets live events overtake the history', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  await send(['old'])
  await app.admin.flows.pause('sluice.replay', { reason: 'test', by: 'me' })
  const { id } = await endpoint({ url: to.url, from: 'beginning' })
  await send(['live'])
  expect(await app.endpoints.trigger()).toEqual({ triggered: 0 })
  await app.endpoints.pause(id)
  await app.endpoints.resume(id)
  await expect(app.admin.lanes.runNow('versions', id)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect((await app.admin.lanes.get('versions', id))?.waiting).toBe(1)
  await app.admin.flows.resume('sluice.replay')
  await expect.poll(() => received(to)).toEqual(['old', 'live'])
})

it('after a cancelled history, the live events follow what was placed', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  await send(['old'])
  const { id, history } = await endpoint({ url: to.url, from: 'beginning', active: false })
  await send(['live'])
  await expect.poll(async () => (await app.admin.lanes.get('versions', id))?.run?.rank).toBe(1)
  expect(await app.admin.replays.cancel(history?.replay ?? '')).toBe('ok')
  await app.endpoints.resume(id)
  await expect.poll(() => received(to)).toEqual(['old', 'live'])
  await expect.poll(async () => (await app.endpoints.get(id))?.history).toBeUndefined()
})

it('rejects a history that begins at no time, and a change of it', async () => {
  const { app, endpoint } = await delivery()
  const wrong = 'yesterday' as unknown as 'now'
  await expect(endpoint({ url: 'https://example.com/', from: wrong })).rejects.toThrow(/from must be 'now'/)
  const { id } = await endpoint({ url: 'https://example.com/' })
  await expect(app.endpoints.update(id, { from: 'beginning' } as object)).rejects.toThrow(/from cannot be changed/)
  expect(() => app.delivery('more', { on: '*', defaults: { from: wrong } })).toThrow(/from must be 'now'/)
})

it('the history of an endpoint that must prove itself begins after the proof', async () => {
  const to = await subscriber({ status: 500 }, echo)
  const { app, endpoint, send } = await delivery({}, 'memory:', undefined, { proof: 'challenge' })
  await send(['a'])
  const { id, proof } = await endpoint({ url: to.url, from: 'beginning' })
  expect(proof).toBe('pending')
  await send(['b'])
  await app.endpoints.prove(id)
  await send(['c'])
  await expect.poll(() => received(to)).toEqual(['a', 'b', 'c'])
})

it('an operator still ends a window of a delivery that only a full batch would end', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery({ window: { quiet: Infinity, max: Infinity, maxEvents: 10 } })
  const { id } = await endpoint({ url: to.url })
  await send(['a'])
  expect(await app.admin.lanes.runNow('versions', id)).toBe('ok')
  await expect.poll(() => received(to)).toEqual(['a'])
  await send(['b'])
  expect(await app.endpoints.trigger()).toEqual({ triggered: 1 })
  await expect.poll(() => received(to)).toEqual(['a', 'b'])
})
