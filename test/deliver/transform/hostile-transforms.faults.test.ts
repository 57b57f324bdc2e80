// Tests 1,000 hostile transformations in a row in a working app: each costs its own delivery, no other endpoint loses an event or
// its order, and the app receives requests all the while.
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { Sluice } from '../../../src/app/sluice.ts'
import { unverified } from '../../../src/sources/index.ts'
import { ownFile } from '../../temporary-folder.ts'
import { subscriber } from '../subscriber.ts'
import { HUNGRY, QUICK, SLOW, type HostileScript } from './hostile-scripts.ts'

const TOTAL = 1_000
const TIMES_SLOW = 2
const TIMES_HUNGRY = 5
const GOOD = 200
const DOUBLES = `export default (events) => events.map((event) => ({ ...event, data: event.data * 2 }))`

/** How often each script runs, so that all of them together run 1,000 times. */
function timesOf(script: HostileScript): number {
  if (SLOW.includes(script)) return TIMES_SLOW
  if (HUNGRY.includes(script)) return TIMES_HUNGRY
  const left = TOTAL - SLOW.length * TIMES_SLOW - HUNGRY.length * TIMES_HUNGRY
  const [least, extra] = [Math.floor(left / QUICK.length), left % QUICK.length]
  return QUICK.indexOf(script) < extra ? least + 1 : least
}

test('1,000 hostile transformations cost 1,000 dead letters, and nothing else', { timeout: 1_800_000 }, async () => {
  const [good, bad] = await Promise.all([subscriber(), subscriber()])
  const app = new Sluice({
    store: ownFile(),
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
    addressRate: { rate: Infinity, per: '1m' },
  })
  app.source('shop', unverified({ verify: 'none' }))
  const received: number[] = []
  app.flow('takes', { on: 'shop/**', run: ({ events }) => void received.push(events.length) })
  app.delivery('orders', { on: 'order.*', window: { quiet: 0, maxEvents: 1 } })
  onTestFinished(() => app.stop())
  await app.start()
  const { url } = await app.listen({ port: 0 })

  const scripts = new Map<string, HostileScript>()
  for (const [n, script] of [...SLOW, ...HUNGRY, ...QUICK].entries()) {
    const { id } = await app.endpoints.create({ url: bad.url, eventFilter: [`order.bad${n}`] })
    // A script that loops while it loads cannot be set, so it must be able to load here.
    const code = script.name === 'loops while it loads' ? 'export default () => { for (;;); }' : script.code
    await app.endpoints.transforms.set(id, { code })
    scripts.set(id, script)
  }
  const { id } = await app.endpoints.create({ url: good.url, form: 'flat', eventFilter: ['order.good'] })
  await app.endpoints.transforms.set(id, { code: DOUBLES })

  const dead = Promise.withResolvers<void>()
  let deaths = 0
  app.on('run.dead', () => (++deaths === TOTAL ? dead.resolve() : undefined))
  const answers: number[] = []
  const over = new AbortController()
  const receiving = (async () => {
    while (!over.signal.aborted) {
      answers.push((await fetch(`${url}/in/shop`, { method: 'POST', body: '{"n":1}' })).status)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  await app.publish(
    [...scripts.values()].flatMap((script, n) =>
      Array.from({ length: timesOf(script) }, () => ({ type: `order.bad${n}`, data: 1 })),
    ),
  )
  for (let data = 0; data < GOOD; data++) await app.publish({ type: 'order.good', data })
  await dead.promise
  await good.reached(GOOD)
  over.abort()
  await receiving

  // The well-behaved endpoint got everything, in order, while the others failed.
  expect(good.got.map(({ body }) => JSON.parse(body) as number)).toEqual(Array.from({ length: GOOD }, (_, n) => 2 * n))
  expect(bad.got).toEqual([])
  // Each event of a hostile endpoint is one dead letter, with the reason, and its lane went on to the next.
  const counted = new Map<string, number>()
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page = await app.admin.deadLetters.list({}, cursor)
    for (const deadLetter of page.items) {
      if (deadLetter.kind !== 'run') throw new Error(`${deadLetter.id} is no run.`)
      const { key, reason, events } = deadLetter
      const script = scripts.get(key)
      expect(events, script?.name).toHaveLength(1)
      expect(reason, script?.name).toContain('transform-failed: ')
      // On a busy machine, the time of any script may be over first.
      if (!reason.includes('It ran for more than 1 s.')) expect(reason, script?.name).toMatch(script?.reason ?? /^$/)
      expect(reason.length, script?.name).toBeLessThan(2_000)
      counted.set(key, (counted.get(key) ?? 0) + 1)
    }
    cursor = page.next
  }
  expect(Object.fromEntries(counted)).toEqual(Object.fromEntries([...scripts].map(([key, one]) => [key, timesOf(one)])))
  // Each request was accepted, and each accepted request has run.
  expect(answers.length).toBeGreaterThan(100)
  expect(new Set(answers)).toEqual(new Set([202]))
  await expect.poll(() => received.reduce((sum, one) => sum + one, 0)).toBe(answers.length)
  // No endpoint failed: the transformations did.
  for (const { health } of await app.endpoints.list())
    expect(health).toMatchObject({ breaker: 'closed', attempts: expect.any(Number), consecutiveFailures: 0 })
})
