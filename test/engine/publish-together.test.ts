// Calls of publish at the same time share a commit, because a server with a disk could not make one commit for each.
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'

interface Counting {
  readonly app: Sluice
  /** The number of events in each call of the store. */
  readonly calls: readonly number[]
}

async function counting(): Promise<Counting> {
  const store = await openStore('memory:')
  const calls: number[] = []
  const counted = new Proxy(store, {
    get(of, name: keyof Store) {
      if (name !== 'append') return typeof of[name] === 'function' ? (of[name] as () => unknown).bind(of) : of[name]
      return async (call: Parameters<Store['append']>[0]) => {
        calls.push(call.events.length)
        // Like a server, the store replies later; until then, more calls of publish collect.
        await new Promise((answered) => setImmediate(answered))
        return of.append(call)
      }
    },
  })
  const app = new Sluice({ store: counted, log: false })
  app.flow('one', { on: 'ping', run: () => {} })
  app.flow('two', { on: 'ping', run: () => {} })
  await app.publish({ type: 'first' })
  calls.length = 0
  return { app, calls }
}

test('a hundred calls at once become a few calls of the store, and each gets its own result', async () => {
  const { app, calls } = await counting()
  const ids = Array.from({ length: 100 }, (_, n) => `e${n}`)
  const published = await Promise.all(ids.map((id) => app.publish({ type: 'ping', id })))
  expect(published).toEqual(ids.map((id) => [{ id, kind: 'stored', of: undefined }]))
  expect(calls.length).toBeLessThanOrEqual(2)
  const again = await Promise.all(ids.map((id, n) => app.publish({ type: 'ping', id: n % 2 === 0 ? id : `new${n}` })))
  expect(again.map(([one]) => one?.kind)).toEqual(ids.map((_, n) => (n % 2 === 0 ? 'repeated' : 'stored')))
  await app.stop()
})

test('each event goes to its own flows', async () => {
  const { app, calls } = await counting()
  const routed = new Map<string, readonly string[] | undefined>()
  app.on('event.received', ({ event, flows }) => routed.set(event, flows))
  await Promise.all([
    app.publish({ type: 'ping', id: 'all' }),
    app.publish({ type: 'ping', id: 'to one' }, { to: 'one' }),
    app.publish([{ type: 'other', id: 'to two' }], { to: ['two'] }),
  ])
  expect([...routed]).toEqual([
    ['all', ['one', 'two']],
    ['to one', ['one']],
    ['to two', ['two']],
  ])
  expect(calls.length).toBeLessThanOrEqual(2)
  await app.stop()
})

test('a rejected event does not keep others from being stored', async () => {
  const { app } = await counting()
  const [bad, good] = await Promise.allSettled([
    app.publish({ type: '', id: 'bad' }),
    app.publish({ type: 'ping', id: 'good' }),
  ])
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'EVENT_INVALID' } })
  expect(good).toMatchObject({ status: 'fulfilled', value: [{ id: 'good', kind: 'stored' }] })
  await app.stop()
})

test('a list is one call of the store, in its order', async () => {
  const { app, calls } = await counting()
  const many = Array.from({ length: 12_000 }, () => ({ type: 'ping' }))
  await Promise.all([app.publish({ type: 'ping' }), app.publish(many), app.publish({ type: 'ping' })])
  expect(calls).toEqual([1, 12_000, 1])
  await app.stop()
})

test('stop waits for published events, even if the caller does not', async () => {
  const app = new Sluice({ store: 'sqlite::memory:', log: false })
  await app.publish({ type: 'first' })
  const list = Array.from({ length: 2_000 }, () => ({ type: 'ping' }))
  const ends = Promise.allSettled(Array.from({ length: 5 }, () => app.publish(list)))
  await Promise.resolve()
  await app.stop()
  const kinds = (await ends).flatMap((end): readonly string[] =>
    end.status === 'fulfilled' ? end.value.map(({ kind }) => kind) : [String(end.reason)],
  )
  expect(kinds).toHaveLength(10_000)
  expect([...new Set(kinds)]).toEqual(['stored'])
})
