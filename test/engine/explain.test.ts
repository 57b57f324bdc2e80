// Tests the sentence of `explain` in each of the main states.
import { describe, expect, test } from 'vitest'
import { snooze, PermanentError, type FlowOptions, type Run } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, ping, play, sendNow, STORES, userOf } from './scene.ts'

function lane(store: string, more: Partial<FlowOptions<Run>> & Pick<FlowOptions<Run>, 'run'>): Promise<TestApp> {
  return play(store, (app) =>
    app.flow('f', { on: 'ping', key: userOf, retry: ['60s'], ...(more as { run: () => void }) }),
  )
}

/** Matches one sentence: it starts with a capital, ends with a period, and names the lane. */
async function sentence(t: TestApp, state: string, key = 'u'): Promise<string> {
  const explanation = await t.explain('f', key)
  expect(explanation.state).toBe(state)
  expect(explanation.text).toMatch(/^Lane .*[^.]\.$/s)
  expect(explanation.text).toContain(`"${key}"`)
  expect(explanation.text).not.toMatch(/undefined|NaN|\[object/)
  return explanation.text
}

describe.each(STORES)('explain on %s', (store) => {
  test('explain says that nothing was ever there', async () => {
    const t = await lane(store, { run: () => {} })
    await sentence(t, 'empty')
  })

  test('explain says that the lane is done', async () => {
    const t = await lane(store, { run: () => {} })
    await sendNow(t, ping('u'))
    expect(await sentence(t, 'empty')).toContain('done')
  })

  test('explain says that the lane waits for its window', async () => {
    const t = await lane(store, { window: { quiet: '10s', max: '60s' }, run: () => {} })
    await t.send(ping('u'))
    await t.advance('3s')
    const text = await sentence(t, 'waiting')
    expect(text).toContain('1 event')
    expect(text).toContain('in 7 s')
    expect(text).toContain('in 57 s')
  })

  test('explain says that the lane is ready behind others, without a free slot', async () => {
    const gate = new Gate()
    const t = await lane(store, { concurrency: 1, run: ({ key }) => gate.wait(key) })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('second'))
    await sendNow(t, ping('u'))
    await t.advance('5s')
    const text = await sentence(t, 'ready')
    expect(text).toContain('number 2 in the queue')
    expect(text).toContain('the one permit of the flow is taken')
  })

  test('explain says that the lane is running', async () => {
    const gate = new Gate()
    const t = await lane(store, { run: () => gate.wait() })
    await sendNow(t, ping('u'))
    await sendNow(t, ping('u'))
    const text = await sentence(t, 'running')
    expect(text).toContain('attempt 1 of 2')
    expect(text).toContain('behind it waits 1 event')
  })

  test('explain says that the run waits for its next attempt', async () => {
    const t = await lane(store, { run: () => {} })
    t.fail('f', new Error('no route'))
    await sendNow(t, ping('u'))
    const text = await sentence(t, 'retrying')
    expect(text).toContain('no route')
    expect(text).toContain('1 attempt left')
  })

  test('explain says that the run is snoozed', async () => {
    const t = await lane(store, { run: () => snooze({ after: '60s' }) })
    await sendNow(t, ping('u'))
    await sentence(t, 'snoozed')
  })

  test('explain says that a dead letter blocks the lane', async () => {
    const t = await lane(store, { onDead: 'block', run: () => {} })
    t.fail('f', new PermanentError('bad'))
    await sendNow(t, ping('u'))
    await sendNow(t, ping('u'))
    const text = await sentence(t, 'blocked')
    expect(text).toContain(t.runs[0]?.id)
    expect(text).toContain('bad')
  })

  test('explain says that the lane is held, or its flow paused', async () => {
    const t = await lane(store, { window: { quiet: '10s' }, run: () => {} })
    await t.send(ping('u'))
    await t.app.admin.lanes.hold('f', 'u', { reason: 'asked to', by: 'ana' })
    expect(await sentence(t, 'held')).toContain('ana')
    await t.app.admin.lanes.unhold('f', 'u')
    await t.app.admin.flows.pause('f', { reason: 'deploy', by: 'bob' })
    await t.advance('20s')
    expect(await sentence(t, 'ready')).toContain('paused by "bob"')
  })

  test('explain says that the lease has lapsed', async () => {
    const gate = new Gate()
    const t = await lane(store, { run: () => gate.wait() })
    await sendNow(t, ping('u'))
    await t.crash()
    await t.advance('40s')
    const text = await sentence(t, 'lapsed')
    expect(text).toContain('lapse 1 of 4')
    expect(text).toContain('no process serves this flow')
  })

  test('explain says that the flow is unknown', async () => {
    const t = await lane(store, { run: () => {} })
    const explanation = await t.explain('nobody', 'u')
    expect(explanation.state).toBe('unknown-flow')
    expect(explanation.text).toContain('not declared here')
  })
})
