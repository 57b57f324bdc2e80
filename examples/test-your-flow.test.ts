// A user's own test: a minute of debouncing, a failure, a crash and a slow API, without waiting for any of it.
import { randomBytes } from 'node:crypto'
import { defineEvent, Sluice } from 'sluice'
import { testApp } from 'sluice/testing'
import { expect, it } from 'vitest'
import { z } from 'zod'

const received = defineEvent('message.received', z.object({ session: z.string(), text: z.string() }))

function build(): Sluice {
  const app = new Sluice({ store: 'sqlite:production.db', log: false })
  return app.flow('answer', {
    on: received,
    key: (event) => event.data.session,
    window: { quiet: '8s' },
    retry: ['1s', '5s'],
    run: async () => {},
  })
}

it('answers once the person stops typing', async () => {
  const t = await testApp(build())
  for (const text of ['hello', 'are you there?']) {
    await t.send(received({ session: 's1', text }))
    await t.advance('5s')
  }
  expect(t.runs).toEqual([])
  expect((await t.explain('answer', 's1')).state).toBe('waiting')
  await t.advance('3s')
  expect(t.runs).toMatchObject([{ key: 's1', at: 13_000, ending: 'done', events: [{ text: 'hello' }, {}] }])
  await t.stop()
})

it('tries again after an error, and comes back after a crash', async () => {
  const t = await testApp(build(), { store: 'sqlite::memory:' })
  t.fail('answer', new Error('the model is overloaded'))
  await t.send(received({ session: 's1', text: 'hello' }))
  await t.advance('8s')
  expect(t.runs).toMatchObject([{ ending: 'retry', error: 'Error: the model is overloaded' }])
  await t.crash()
  await t.restart()
  await t.advance('1m')
  expect(t.runs).toMatchObject([{ attempt: 1 }, { attempt: 2, ending: 'done' }])
  await t.stop()
})

it('posts to subscribers, and tries again when one answers 503', async () => {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: randomBytes(32).toString('base64') })
  app.delivery('news', { on: 'news.*', retry: ['30s'] })
  const statuses = [503, 200]
  const posted: unknown[] = []
  const t = await testApp(app, {
    fetch: async (request) => {
      posted.push([t.elapsed, request.url, await request.json()])
      return new Response('', { status: statuses.shift() ?? 200 })
    },
  })
  await app.endpoints.create({ url: 'https://subscriber.example/hook' })
  await t.send({ type: 'news.out', data: { title: 'Sluice' } })
  await t.advance('1m')
  const body = { type: 'news', data: { events: [{ type: 'news.out', data: { title: 'Sluice' } }] } }
  expect(posted).toMatchObject([
    [0, 'https://subscriber.example/hook', body],
    [30_000, 'https://subscriber.example/hook', body],
  ])
  await t.stop()
})
