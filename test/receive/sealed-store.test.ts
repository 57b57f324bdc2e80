// What a run publishes for a sealed source is sealed as well, and a mark that cannot be opened waits for who can.
import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { Seal } from '../../src/seal.ts'
import { sealedStore } from '../../src/sealed-store.ts'
import { github } from '../../src/sources/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { eventsIn, githubHook, KEY, NOW, opened, SECRET, textOf } from './scene.ts'

const BODY = JSON.stringify({ text: 'nobody reads this' })

function sealed(app: Sluice): Sluice {
  return app.source('github', github({ secret: SECRET }), { encrypt: true })
}

describe('what a run publishes', () => {
  it('under the name of a sealed source is unreadable in the store, and as it was to the next run', async () => {
    const store = await openStore('memory:')
    const texts: string[] = []
    const app = sealed(new Sluice({ store, key: KEY, log: false }))
      .flow('first', {
        on: 'app/ping',
        run: (run) => run.publish({ source: 'github', type: 'told', body: BODY, subject: 's' }),
      })
      .flow('second', { on: 'github/told', run: ({ events }) => void texts.push(events[0]?.text ?? '') })
    onTestFinished(async () => {
      await app.stop()
      await store.close()
    })
    await app.start()
    const done = Promise.withResolvers<void>()
    app.events.on('run.done', ({ flow }) => (flow === 'second' ? done.resolve() : undefined))
    await app.publish({ type: 'ping' })
    await done.promise
    const told = (await eventsIn(store)).find(({ type }) => type === 'told')
    expect(textOf(told?.body)).not.toContain('nobody')
    expect(told?.attributes).toContain('sluicesealed')
    expect(texts).toEqual([BODY])
  })
})

const notYet = (): never => {
  throw new Error('not yet')
}

/** An event of a sealed source that could not be routed. */
async function marked(): Promise<{ readonly store: Store; readonly clock: VirtualClock }> {
  const clock = new VirtualClock(NOW)
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const flow = { on: 'github/**', key: notYet, run: () => {} }
  const { app } = await opened((one) => sealed(one).flow('f', flow), { key: KEY, store })
  expect((await app.fetch(githubHook(BODY))).status).toBe(202)
  return { store, clock }
}

describe('a mark', () => {
  const ask = { n: 10, lease: 1_000, reasons: ['key-failed'], flows: ['f'] } as const

  it('is opened for who has the key, and left for that one by who has not', async () => {
    const { store, clock } = await marked()
    const by = (key: string): Store => sealedStore(store, new Seal([key]), (name) => name === 'github')
    const other = by(randomBytes(32).toString('base64'))
    expect((await other.unrouted(ask)).marks).toEqual([])
    clock.advance(1_001)
    const { marks } = await by(KEY).unrouted(ask)
    expect(marks.map(({ flow, event }) => [flow, textOf(event.body)])).toEqual([['f', BODY]])
    // It is still there, for nothing has been done about it.
    expect((await store.find({ kind: 'marks', filter: {}, cursor: '', n: 10 })).items).toHaveLength(1)
  })
})
