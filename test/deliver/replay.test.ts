// Tests the replay of an endpoint's dead letters: all of them or one, and none of another endpoint.
import { expect, it } from 'vitest'
import { delivery, subscriber } from './subscriber.ts'

it("replay retries the endpoint's own dead letters before its waiting events", async () => {
  const failing = { status: 500 }
  const [to, other] = [await subscriber(failing, failing, failing), await subscriber(failing)]
  const { app, endpoint, send } = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } })
  const { id } = await endpoint({ url: to.url, tenant: 'mine' })
  const { id: otherId } = await endpoint({ url: other.url, tenant: 'other' })
  await send(['x'], { tenant: 'other' })
  await send(['a', 'b', 'c'], { tenant: 'mine' })
  await expect.poll(() => app.admin.deadLetters.count()).toBe(4)
  const deadLetters = (await app.admin.deadLetters.list()).items.filter((one) => one.kind === 'run')
  const [mine, others] = [id, otherId].map((key) => deadLetters.find((one) => one.key === key)?.id ?? '')
  await expect(app.endpoints.replay(id, { deadLetter: others ?? '' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await app.endpoints.replay(id, { deadLetter: mine ?? '' })).toEqual({ count: 1 })
  await to.reached(4)
  await expect.poll(() => app.admin.deadLetters.count()).toBe(3)
  expect(await app.endpoints.replay(id)).toEqual({ count: 2 })
  await to.reached(6)
  await expect.poll(() => app.admin.deadLetters.count()).toBe(1)
  expect(
    to.got
      .slice(3)
      .flatMap(({ ids }) => ids)
      .toSorted(),
  ).toEqual(['a', 'b', 'c'])
  expect(other.got).toHaveLength(1)
})

it('a replayed batch has a webhook-id of its own and names its replay, also when it is retried by hand', async () => {
  const to = await subscriber({ status: 200 }, { status: 500 })
  const { app, endpoint, send } = await delivery({ retry: [] })
  await endpoint({ url: to.url })
  await send(['a'])
  await to.reached(1)
  await app.admin.replays.start({ type: 'version.new' }, { id: 'again / ä' })
  await to.reached(2)
  await expect.poll(() => app.admin.deadLetters.count()).toBe(1)
  await app.admin.deadLetters.retry({ flow: 'versions' })
  await to.reached(3)
  const [live, replayed, retried] = to.got.map(({ headers }) => headers)
  expect(live?.['webhook-replay']).toBeUndefined()
  expect(replayed?.['webhook-replay']).toBe('again%20%2F%20%C3%A4')
  expect(replayed?.['webhook-id']).not.toBe(live?.['webhook-id'])
  expect(retried?.['webhook-id']).toBe(replayed?.['webhook-id'])
  expect(retried?.['webhook-replay']).toBe(replayed?.['webhook-replay'])
})
