// Measures the rate of an endpoint in real time.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { subscriber } from './subscriber.ts'

const KEY = randomBytes(32).toString('base64')

it('two processes and two deliveries share the rate', async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const at: number[] = []
  const apps = ['one', 'other'].map((name) => {
    const app = new Sluice({ store, log: false, encryptionKey: KEY, delivery: { allowLoopback: true } })
    app.delivery(name, { on: `${name}.*`, window: { quiet: 0, maxEvents: 1 } })
    onTestFinished(() => app.stop())
    return app
  })
  for (const app of apps) await app.start()
  await apps[0]?.endpoints.create({ url: to.url, rate: { rate: 1, per: '400ms' } })
  for (const [n, app] of apps.entries()) {
    const type = n === 0 ? 'one.new' : 'other.new'
    await app.publish([1, 2].map((data) => ({ type, data })))
  }
  for (let posts = 1; posts <= 4; posts++) {
    await to.reached(posts)
    at.push(performance.now())
  }
  const apart = at.slice(1).map((time, n) => time - (at[n] ?? 0))
  expect(Math.min(...apart)).toBeGreaterThan(300)
})
