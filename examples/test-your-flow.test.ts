// A user's own test: a minute of debouncing, a failure and a crash, without waiting for any of it.
import { Sluice } from 'sluice'
import { testApp } from 'sluice/testing'
import { expect, it } from 'vitest'

function build(): Sluice {
  const app = new Sluice({ store: 'sqlite:production.db', log: false })
  return app.flow('answer', {
    on: 'message.received',
    key: (event) => (event.data as { session: string }).session,
    window: { quiet: '8s' },
    retry: ['1s', '5s'],
    run: async () => {},
  })
}

it('answers once the person stops typing', async () => {
  const t = await testApp(build())
  for (const text of ['hello', 'are you there?']) {
    await t.send({ type: 'message.received', data: { session: 's1', text } })
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
  await t.send({ type: 'message.received', data: { session: 's1' } })
  await t.advance('8s')
  expect(t.runs).toMatchObject([{ ending: 'retry', error: 'Error: the model is overloaded' }])
  await t.crash()
  await t.restart()
  await t.advance('1m')
  expect(t.runs).toMatchObject([{ attempt: 1 }, { attempt: 2, ending: 'done' }])
  await t.stop()
})
