// L19 and explain: only a started process serves its flows. A process that only opens the store, e.g. a command, serves none.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { ping, Shared, START, STORES, userOf, type Declare } from './scene.ts'

const UNSERVED = 'no process serves this flow'

const waits: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} })
const others: Declare = (app) => app.flow('f', { on: 'pong', key: userOf, window: { quiet: '1h' }, run: () => {} })

/** Declares its flows and never starts, like a command without a server. */
function command(shared: Shared, declare: Declare, name = 'command'): Sluice {
  const app = new Sluice({ log: false, store: shared.store, clock: shared.clock, process: name })
  declare(app)
  onTestFinished(() => shared.stop(app))
  return app
}

async function explained(app: Sluice): Promise<string> {
  return (await app.explain('f', 'u')).text
}

describe.each(STORES)('which process serves a flow, on %s', (store) => {
  test('explain in a process that has not started knows that another one serves the flow', async () => {
    const shared = await Shared.open(store)
    const worker = await shared.process('worker', waits)
    await worker.publish(ping('u'))
    expect(await explained(command(shared, waits))).not.toContain(UNSERVED)
    expect(await explained(command(shared, () => {}))).not.toContain(UNSERVED)
    // Two processes with one configuration may have the same name.
    expect(await explained(command(shared, waits, 'worker'))).not.toContain(UNSERVED)
  })

  test('explain in a process that has not started sees when a worker started, or has been gone for a minute', async () => {
    const shared = await Shared.open(store)
    const asks = command(shared, waits)
    await asks.publish(ping('u'))
    expect(await explained(asks)).toContain(UNSERVED)
    const worker = await shared.process('worker', waits)
    expect(await explained(asks)).not.toContain(UNSERVED)
    await shared.advance(300_000)
    expect(await explained(asks)).not.toContain(UNSERVED)
    await shared.stop(worker)
    await shared.advance(61_000)
    expect(await explained(asks)).toContain(UNSERVED)
    expect(await explained(command(shared, () => {}))).toContain(UNSERVED)
  })

  test('L19 a process that only opens the store serves nothing, and does not hide the process that serves', async () => {
    const shared = await Shared.open(store)
    await command(shared, waits, 'first').publish(ping('u'))
    expect(await explained(command(shared, waits, 'second'))).toContain(UNSERVED)
  })

  test('L18 a process that only opens the store does not replace the routes of a worker', async () => {
    const shared = await Shared.open(store)
    const worker = await shared.process('worker', waits)
    await command(shared, others).explain('f', 'u')
    const sender = await shared.process('sender', (app) => app.flow('none', { on: 'none', run: () => {} }))
    await sender.publish(ping('u'))
    await shared.advance(1_000)
    expect((await worker.admin.lanes.get('f', 'u'))?.waiting).toBe(1)
  })

  test('L18 a flow that was declared by a process without a start gets events of other publishers for a week', async () => {
    const shared = await Shared.open(store)
    await command(shared, waits).explain('f', 'u')
    const sender = await shared.process('sender', (app) => app.flow('none', { on: 'none', run: () => {} }))
    await sender.publish(ping('u'))
    shared.clock.set(START + 7 * 86_400_000 + 60_000)
    await shared.advance(60_000)
    await sender.publish(ping('v'))
    expect((await sender.admin.deadLetters.list({ kind: 'unrouted' })).items).toHaveLength(1)
  })
})
