// An operator retires a flow that no longer exists: nothing is kept for it any more. Each unrouted record is handled separately.
import { describe, expect, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { ping, Shared, STORES, userOf, type Declare } from './scene.ts'

function flow(name: string): Declare {
  return (app) => app.flow(name, { on: 'ping', key: userOf, run: () => {} })
}

async function unroutedOf(app: Sluice): Promise<readonly string[]> {
  return (await app.admin.deadLetters.list({ kind: 'unrouted' })).items.map((deadLetter) => deadLetter.flow)
}

function broken(): never {
  throw new Error('broken')
}

describe.each(STORES)('L18 flows.retire on %s', (store) => {
  test('L18 a retired flow gets no more unrouted events from any process, and its existing ones end', async () => {
    const shared = await Shared.open(store)
    const old = await shared.process('old', flow('gone'))
    await shared.stop(old)
    const a = await shared.process('a', flow('one'))
    const b = await shared.process('b', flow('one'))
    await shared.advance(60_000)
    await b.publish([ping('u'), ping('v')])
    expect(await unroutedOf(a)).toEqual(['gone', 'gone'])
    expect(await a.admin.flows.retire('gone', 'ann')).toBe('ok')
    expect(await unroutedOf(a)).toEqual([])
    await a.publish(ping('w'))
    await b.publish(ping('x'))
    expect(await unroutedOf(a)).toEqual([])
    expect(await a.admin.flows.retire('gone')).toBe('missing')
    const { items } = await shared.store.find({ kind: 'audit', filter: {}, cursor: '', n: 10 })
    expect(items).toMatchObject([{ who: 'ann', what: 'retire flow gone' }])
  })

  test('L18 a flow that a process serves, here or elsewhere, cannot be retired', async () => {
    const shared = await Shared.open(store)
    const a = await shared.process('a', flow('one'))
    await shared.process('b', flow('two'))
    await shared.advance(120_000)
    expect(await a.admin.flows.retire('one')).toBe('running')
    expect(await a.admin.flows.retire('two')).toBe('running')
    expect(await a.admin.flows.retire('three')).toBe('missing')
  })

  test('L18 the flow of a removed alert gets no unrouted events, except those of alerts', async () => {
    const shared = await Shared.open(store)
    const old = await shared.process('old', (app) => app.alert('odd', { when: () => false, notify: () => {} }))
    await shared.stop(old)
    const app = await shared.process('a', (one) => {
      flow('one')(one)
      one.alert('even', { when: () => true, for: 0 })
    })
    await app.publish(ping('u'))
    await shared.advance(20_000)
    expect(await unroutedOf(app)).toEqual(['alert/odd'])
  })

  test('L18 a retired flow may be declared again', async () => {
    const shared = await Shared.open(store)
    const old = await shared.process('old', flow('gone'))
    await shared.stop(old)
    await shared.advance(60_000)
    const a = await shared.process('a', flow('one'))
    expect(await a.admin.flows.retire('gone')).toBe('ok')
    const ran: string[] = []
    await shared.process('back', (app) =>
      app.flow('gone', { on: 'ping', run: ({ flow: name }) => void ran.push(name) }),
    )
    await a.publish(ping('u'))
    await shared.advance(2_000)
    expect(ran).toEqual(['gone'])
  })
})

describe.each(STORES)('L2a single unrouted records on %s', (store) => {
  test('L2a dropping one does not retry the others', async () => {
    const shared = await Shared.open(store)
    let asked = 0
    const app = await shared.process('a', (one) =>
      one.flow('f', {
        on: 'ping',
        key: () => {
          asked++
          throw new Error('broken')
        },
        run: () => {},
      }),
    )
    await app.publish([ping('u'), ping('v')])
    await shared.advance(120_000)
    const before = asked
    const { items } = await app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(await app.admin.deadLetters.drop(items[0]?.id ?? '')).toBe('ok')
    await shared.advance(120_000)
    expect(asked).toBe(before)
    await app.admin.deadLetters.drop({ kind: 'unrouted' })
    expect(await unroutedOf(app)).toEqual([])
  })

  test('L2a one that is retried without success keeps its age', async () => {
    const shared = await Shared.open(store)
    const app = await shared.process('a', (one) => one.flow('f', { on: 'ping', key: broken, run: () => {} }))
    await app.publish(ping('u'))
    const [first] = (await app.admin.deadLetters.list({ kind: 'unrouted' })).items
    await shared.advance(120_000)
    await app.admin.deadLetters.retry({ kind: 'unrouted' })
    await shared.advance(2_000)
    const [second] = (await app.admin.deadLetters.list({ kind: 'unrouted' })).items
    expect(second?.id).not.toBe(first?.id)
    expect(second?.at).toBe(first?.at)
  })
})
