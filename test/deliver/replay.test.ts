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
  const letters = (await app.admin.deadLetters.list()).items.filter((one) => one.kind === 'run')
  const [mine, others] = [id, otherId].map((key) => letters.find((one) => one.key === key)?.id ?? '')
  await expect(app.endpoints.replay(id, { letter: others ?? '' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await app.endpoints.replay(id, { letter: mine ?? '' })).toEqual({ count: 1 })
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
