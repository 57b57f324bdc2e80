// A claim that the store rejects every time: the flow does not run, an alert and `explain` say why, and no other flow
// is delayed.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice, SluiceError, type EventMap, type Store } from '../../src/index.ts'
import { Gate, ping, Shared, STORES, userOf } from './scene.ts'

interface Scene {
  readonly shared: Shared
  readonly app: Sluice
  readonly gate: Gate
  /** The flows whose claims the store rejects. */
  readonly refused: Set<string>
  readonly alerts: (readonly [name: string, what: EventMap['alert.raised']])[]
  readonly claims: () => number
}

async function scene(address: string): Promise<Scene> {
  const shared = await Shared.open(address)
  const refused = new Set<string>()
  const alerts: (readonly [string, EventMap['alert.raised']])[] = []
  const gate = new Gate()
  let claims = 0
  const turn: Store['settleAndClaim'] = async (call) => {
    if (call.claim.some(({ flow }) => refused.has(flow))) {
      claims++
      await new Promise((resolve) => setImmediate(resolve))
      throw new SluiceError('STORE_FAILED', 'A transaction found no end.')
    }
    return shared.store.settleAndClaim(call)
  }
  const store = new Proxy(shared.store, {
    get: (target, name): unknown => (name === 'settleAndClaim' ? turn : Reflect.get(target, name)),
  })
  const app = new Sluice({ log: false, store, clock: shared.clock })
  app.flow('bad', { on: 'ping', key: userOf, run: () => {} })
  app.flow('good', { on: 'ping', key: userOf, run: ({ key }) => gate.wait(key) })
  for (const name of ['alert.raised', 'alert.cleared'] as const) {
    app.on(name, (what) => void alerts.push([name, what]))
  }
  await app.start()
  onTestFinished(() => shared.stop(app))
  await shared.settled()
  return { shared, app, gate, refused, alerts, claims: () => claims }
}

describe.each(STORES)('a claim that always fails, on %s', (store) => {
  test('another flow of the same call runs, and its ended runs are settled', async () => {
    const { shared, app, gate, refused } = await scene(store)
    refused.add('bad')
    await app.publish(ping('u'))
    await shared.advance(1_000)
    expect(gate.waits('u')).toBe(1)
    gate.open('u')
    await app.publish(ping('v'))
    await shared.advance(1_000)
    expect(gate.waits('v')).toBe(1)
    expect((await app.explain('good', 'u')).state).toBe('empty')
    gate.open('v')
  })

  test('an alert is raised once, explain gives the reason, and both end when the claim works again', async () => {
    const { shared, app, gate, refused, alerts } = await scene(store)
    refused.add('bad')
    await app.publish(ping('u'))
    await shared.advance(120_000)
    const text = expect.stringContaining('STORE_FAILED: A transaction found no end.') as string
    expect(alerts).toEqual([['alert.raised', { alert: 'claim:bad', text }]])
    const explained = await app.explain('bad', 'u')
    expect(explained.text).toContain('claims of this flow fail: STORE_FAILED: A transaction found no end.')
    expect(explained.facts.claimError).toContain('A transaction found no end.')
    expect((await app.explain('good', 'u')).facts.claimError).toBeUndefined()
    refused.clear()
    await shared.advance(30_000)
    expect(alerts.map(([name, { alert }]) => [name, alert])).toEqual([
      ['alert.raised', 'claim:bad'],
      ['alert.cleared', 'claim:bad'],
    ])
    expect((await app.explain('bad', 'u')).state).toBe('empty')
    gate.open('u')
  })

  test('the claim is retried after a pause, however many events arrive', async () => {
    const { shared, app, gate, refused, claims } = await scene(store)
    refused.add('bad')
    for (let n = 0; n < 60; n++) {
      await app.publish(ping(`u${n}`))
      await shared.advance(1_000)
    }
    expect(claims()).toBeLessThan(30)
    for (let n = 0; n < 60; n++) gate.open(`u${n}`)
    refused.clear()
    await shared.advance(30_000)
    expect((await app.explain('bad', 'u59')).state).toBe('empty')
  })
})
