// 10,000 events that are published one by one take a server tens of seconds. On the other stores: test/engine/order-everywhere.test.ts.
import { describe, inject, it } from 'vitest'
import { expectOrder, OPTIONS, publishOneByOne, watchOrder } from '../order-everywhere.ts'
import { atWork } from './running-app.ts'

const COUNT = 10_000

describe.each(inject('postgresServers'))('10,000 events published one by one on $name', ({ url }) => {
  it('L7 D2 reach an endpoint, a handler and an export in exactly that order', async () => {
    const seen = watchOrder()
    const { declare, fetch } = seen
    const t = await atWork({ url, now: Date.UTC(2026, 0, 10, 12), declare, fetch, options: OPTIONS })
    await publishOneByOne(t, COUNT)
    await expectOrder(t, seen, COUNT)
  })
})
