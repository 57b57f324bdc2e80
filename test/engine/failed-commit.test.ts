// L6c: a run whose commit() failed does not end as done, even if its handler hides the error.
import { expect, test } from 'vitest'
import { drop, openStore, Sluice, type Store } from '../../src/index.ts'

/** A memory store in which the first commit of each run fails. */
async function storeThatFailsOneCommit(): Promise<Store> {
  const bare = await openStore('memory:')
  let failures = 0
  return new Proxy(bare, {
    get: (target, name): unknown => {
      if (name === 'renew')
        return (call: Parameters<Store['renew']>[0]) => {
          if (call.runs.some(({ commit }) => commit) && failures++ === 0) throw new Error('The connection is gone.')
          return target.renew(call)
        }
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

function firstEnding(app: Sluice): Promise<{ readonly name: string; readonly what: unknown }> {
  const { promise, resolve } = Promise.withResolvers<{ readonly name: string; readonly what: unknown }>()
  app.onAny((name, what) => {
    if (ENDED.has(name)) resolve({ name, what })
  })
  return promise
}

const ENDED: ReadonlySet<string> = new Set(['run.done', 'run.dropped', 'run.retry', 'run.cancelled'])

const ENDINGS = [
  ['nothing', () => undefined],
  ['drop', () => drop('not worth it')],
] as const

test.each(ENDINGS)('L6c a handler that returns %s after its commit failed has failed', async (_name, ending) => {
  const app = new Sluice({ store: await storeThatFailsOneCommit(), log: false })
  app.flow('f', {
    on: 'ping',
    key: () => 'k',
    whileRunning: 'cancel',
    retry: ['1h'],
    run: async (run) => {
      await run.commit().catch(() => 'hidden')
      return ending()
    },
  })
  const ended = firstEnding(app)
  await app.start()
  await app.publish({ type: 'ping' })
  expect(await ended).toMatchObject({
    name: 'run.retry',
    what: { error: expect.stringContaining('run.commit() failed') },
  })
  await app.stop()
})

test('L6c a handler whose second commit succeeded is done', async () => {
  const app = new Sluice({ store: await storeThatFailsOneCommit(), log: false })
  app.flow('f', {
    on: 'ping',
    key: () => 'k',
    whileRunning: 'cancel',
    run: async (run) => {
      await run.commit().catch(() => run.commit())
    },
  })
  const ended = firstEnding(app)
  await app.start()
  await app.publish({ type: 'ping' })
  expect(await ended).toMatchObject({ name: 'run.done', what: { attempt: 1 } })
  await app.stop()
})
