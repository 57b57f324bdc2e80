// `run.sleep` waits on the app's clock, and ends as soon as the run's signal aborts.
import { describe, expect, test } from 'vitest'
import type { Run } from '../../src/index.ts'
import { ping, play, sendNow, STORES, userOf, type Declare } from './scene.ts'

function sleeper(awake: string[], more: Partial<Parameters<Parameters<Declare>[0]['flow']>[1]> = {}): Declare {
  const run = async ({ key, events, sleep }: Run): Promise<void> => {
    await sleep('30s')
    awake.push(`${key} ${events.length}`)
  }
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...more, run })
}

describe.each(STORES)('run.sleep on %s', (store) => {
  test('resolves after the duration on the virtual clock', async () => {
    const awake: string[] = []
    const t = await play(store, sleeper(awake))
    await sendNow(t, ping('u'))
    await t.advance('29s')
    expect([awake, t.runs[0]?.ending]).toEqual([[], 'running'])
    await t.advance('1s')
    expect([awake, t.runs[0]?.ending]).toEqual([['u 1'], 'done'])
  })

  test('rejects when a newer event cancels the run, whose events come back', async () => {
    const awake: string[] = []
    const t = await play(store, sleeper(awake, { whileRunning: 'cancel', window: { quiet: '1s', max: '2m' } }))
    await t.send(ping('u', 1))
    await t.advance('11s')
    await sendNow(t, ping('u', 2))
    expect(t.runs.map(({ ending }) => ending)).toEqual(['cancelled'])
    await t.advance('40s')
    expect(awake).toEqual(['u 2'])
  })

  test('rejects when the run times out, and when the app stops', async () => {
    const awake: string[] = []
    const t = await play(store, sleeper(awake, { timeout: '10s', retry: ['1h'] }), { shutdownTimeout: '1s' })
    await sendNow(t, ping('late'))
    await t.advance('10s')
    expect(t.runs).toMatchObject([{ key: 'late', ending: 'retry' }])
    await sendNow(t, ping('stopped'))
    await t.stop()
    expect(t.runs.at(-1)).toMatchObject({ key: 'stopped', ending: 'deferred' })
    expect(awake).toEqual([])
  })

  test('rejects a duration that is none', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', retry: [], run: ({ sleep }) => sleep('soon' as never) }),
    )
    await sendNow(t, ping('u'))
    expect(t.runs[0]?.error).toContain('run.sleep')
  })
})
