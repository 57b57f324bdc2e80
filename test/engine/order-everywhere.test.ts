// Events reach an endpoint, a handler and an export in the order in which they were published. On PostgreSQL:
// test/postgres/order.faults.test.ts.
import { describe, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { testApp } from '../../src/testing/index.ts'
import { expectOrder, OPTIONS, publishOneByOne, watchOrder } from '../order-everywhere.ts'

const COUNT = 10_000

describe.each(['memory:', 'sqlite::memory:'])('10,000 events published one by one on %s', (store) => {
  it('L7 D2 reach an endpoint, a handler and an export in exactly that order', async () => {
    const seen = watchOrder()
    const app = new Sluice({ store: 'memory:', log: false, ...OPTIONS })
    seen.declare(app)
    const t = await testApp(app, { store, fetch: seen.fetch })
    await publishOneByOne(t, COUNT)
    await expectOrder(t, seen, COUNT)
    expect(t.runs.length).toBeGreaterThan(COUNT / 1_000)
    await t.stop()
  })
})
