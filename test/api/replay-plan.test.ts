// Tests what a replay would do, before it starts.
import { describe, expect, test } from 'vitest'
import type { ReplayPlan } from '../../src/admin/replay-plan.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping } from './seeded.ts'

const plan = async (r: Rig, query: string): Promise<ReplayPlan> => (await r.get(`/v1/replays/plan?${query}`)).body

describe.each(STORES)('the plan of a replay on %s', (store) => {
  const opened = (): Promise<Rig> =>
    rig(store, (app) =>
      app
        .flow('rank', {
          on: 'ping',
          key: (event) => (event.data as { user?: string }).user ?? null,
          run: () => {},
        })
        .flow('fails', {
          on: 'ping',
          key: () => {
            throw new Error('no key')
          },
          run: () => {},
        })
        .flow('other', { on: 'other', run: () => {} }),
    )

  test('counts what each flow would place, skip, not want, and fail at', async () => {
    const r = await opened()
    await r.t.send([ping('ada'), ping('bob'), ping('ada'), { type: 'ping', data: {} }])
    await r.t.advance('1m')
    await r.t.send({ type: 'other', data: {} })
    const whole = await plan(r, '')
    expect(whole).toMatchObject({ count: 5, exact: true, bytes: 64, oldest: START, newest: START + 60_000 })
    expect(whole.flows).toEqual([
      { flow: 'rank', placed: 3, skipped: 1, unwanted: 1, failed: 0, lanes: 2, sampled: 5 },
      { flow: 'fails', placed: 0, skipped: 0, unwanted: 1, failed: 4, lanes: 0, sampled: 5 },
      { flow: 'other', placed: 1, skipped: 0, unwanted: 4, failed: 0, lanes: 1, sampled: 5 },
    ])
    expect(await plan(r, 'type=other&into=rank')).toMatchObject({ count: 1, flows: [{ flow: 'rank', unwanted: 1 }] })
    expect(await plan(r, 'type=nothing&into=rank,other')).toMatchObject({
      count: 0,
      bytes: 0,
      flows: [{}, { sampled: 0 }],
    })
  })

  test('is scaled from a sample of 500, starts nothing, and works for one event', async () => {
    const r = await opened()
    for (let n = 0; n < 4; n++) await r.t.send(Array.from({ length: 300 }, (_, at) => ping(`u${at % 10}`)))
    const runs = r.t.runs.length
    const { count, flows } = await plan(r, 'into=rank')
    expect(count).toBe(1_200)
    expect(flows).toEqual([
      { flow: 'rank', placed: 1_200, skipped: 0, unwanted: 0, failed: 0, lanes: 10, sampled: 500 },
    ])
    await r.t.advance('1m')
    expect(r.t.runs).toHaveLength(runs)
    const [event] = await r.t.send(ping('eve'))
    expect(await plan(r, `event=${event?.id}&into=rank`)).toMatchObject({ count: 1, flows: [{ placed: 1, lanes: 1 }] })
  })

  test.each([['into=nothing'], ['into='], ['flow=rank'], ['colour=red']])('refuses ?%s', async (query) => {
    const r = await opened()
    expect((await r.get(`/v1/replays/plan?${query}`)).status).toBe(400)
  })
})
