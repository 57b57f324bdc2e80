// Tests why dead letters died, how many an action by filter would touch, and what became of them.
import { describe, expect, test } from 'vitest'
import type { DeadLetterProgress } from '../../src/admin/dead-letter-acts.ts'
import type { DeadLetterReasons } from '../../src/admin/dead-letter-reasons.ts'
import type { Sluice } from '../../src/index.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping, seeded } from './seeded.ts'

const HOUR = 3_600_000
const userOf = (event: { readonly data: unknown }): string => (event.data as { user: string }).user

/** Fails with the text that the subject of the event says, until `mended`. */
function failing(state: { mended: boolean }): (app: Sluice) => Sluice {
  return (app) =>
    app.flow('bill', {
      on: 'ping',
      key: userOf,
      retry: [],
      onDead: 'block',
      run: ({ events: [event] }) => {
        if (!state.mended) throw new Error(event?.subject ?? '')
      },
    })
}

async function died(r: Rig, ...texts: readonly string[]): Promise<void> {
  for (const [n, text] of texts.entries()) await r.t.send(ping(`${text} ${n}`, n, { subject: text }))
}

const reasonsOf = async (r: Rig, query = ''): Promise<DeadLetterReasons> =>
  (await r.get(`/v1/dead-letters/reasons${query}`)).body

const act = async (r: Rig, kind: string, body: object): Promise<{ readonly count: number; readonly act: string }> =>
  (await r.post(`/v1/dead-letters/${kind}`, body)).body
const progress = async (r: Rig, id: string): Promise<DeadLetterProgress> =>
  (await r.get(`/v1/dead-letters/acts/${id}`)).body

describe.each(STORES)('the reasons of dead letters on %s', (store) => {
  test('are grouped without numbers, ids and quoted texts, the largest group first', async () => {
    const r = await rig(store, failing({ mended: false }))
    await died(r, 'No tax for "Ada", order 1', 'No tax for "Bob", order 22', 'Timeout')
    await r.t.advance('2h')
    await died(r, 'No tax for "Eve", order 333', 'Gone: 0189f7c2-6f1e-7a3c-9d2b-1f0e3c4d5b6a')
    const { groups, ...rest } = await reasonsOf(r)
    expect(rest).toEqual({ now: START + 2 * HOUR, total: 5, exact: true })
    expect(groups.map(({ reason, pattern, count }) => [reason, pattern, count])).toEqual([
      ['Error: No tax for "Eve", order 333', 'Error: No tax for', 3],
      ['Error: Gone: 0189f7c2-6f1e-7a3c-9d2b-1f0e3c4d5b6a', 'Error: Gone:', 1],
      ['Error: Timeout', 'Error: Timeout', 1],
    ])
    const [tax] = groups
    expect(tax).toMatchObject({
      flow: 'bill',
      kind: 'run',
      lanes: 3,
      blocking: 3,
      first: START,
      last: START + 2 * HOUR,
    })
    expect(tax?.hours).toEqual([...Array.from({ length: 21 }, () => 0), 2, 0, 1])
    const found = await r.get(`/v1/dead-letters?reason=${encodeURIComponent(tax?.pattern ?? '')}`)
    expect((found.body as { items: unknown[] }).items).toHaveLength(3)
  })

  test('include unrouted events, unless a kind is asked for', async () => {
    const r = await seeded(store)
    const list = async (query: string): Promise<readonly string[]> => {
      const { body } = await r.get(`/v1/dead-letters/reasons${query}`, { key: r.read })
      return (body as DeadLetterReasons).groups.map(
        ({ kind, flow, reason, count }) => `${kind} ${flow} ${reason} ${count}`,
      )
    }
    const runs = ['run blocks Error: no way 3', 'run fails Error: no luck 3']
    expect((await list('')).toSorted()).toEqual([...runs, 'unrouted keyless no key 3'])
    expect((await list('?kind=run')).toSorted()).toEqual(runs)
    expect(await list('?flow=fails&reason=LUCK')).toEqual([runs[1]])
    expect(await list('?kind=unrouted&reason=key')).toEqual(['unrouted keyless no key 3'])
  })

  test('a reason of numbers alone is its own pattern, and hostile reasons are only text', async () => {
    const r = await rig(store, failing({ mended: false }))
    await died(r, '<img src=x onerror=alert(1)>')
    const [group] = (await reasonsOf(r)).groups
    expect(group?.reason).toBe('Error: <img src=x onerror=alert(1)>')
    expect((await reasonsOf(r, `?reason=${encodeURIComponent('ONERROR=alert(1)')}`)).total).toBe(1)
  })
})

describe.each(STORES)('actions by reason on %s', (store) => {
  test('are counted first, then only the matches are retried, with their progress', async () => {
    const state = { mended: false }
    const r = await rig(store, failing(state))
    await died(r, 'Timeout', 'No tax 1', 'No tax 2', 'No tax 3')
    expect((await r.get('/v1/dead-letters/count?reason=no+tax')).body).toEqual({
      count: 3,
      lanes: 3,
      events: 3,
      blocking: 3,
      exact: true,
    })
    await r.app.admin.flows.pause('bill', { reason: 'x', by: 'y' })
    const one = await act(r, 'retry', { reason: 'no tax', limit: 1 })
    expect(one.count).toBe(1)
    expect(await progress(r, one.act)).toMatchObject({
      act: 'retry',
      by: 'loopback',
      count: 1,
      done: 0,
      deadAgain: 0,
      open: 1,
    })
    await r.app.admin.flows.resume('bill')
    await r.t.advance('1s')
    expect(await progress(r, one.act)).toMatchObject({ count: 1, done: 0, deadAgain: 1, open: 0 })
    state.mended = true
    const all = await act(r, 'retry', { reason: 'No Tax' })
    await r.t.advance('1s')
    expect(await progress(r, all.act)).toMatchObject({ count: 3, done: 3, deadAgain: 0, open: 0 })
    expect((await reasonsOf(r)).groups.map(({ reason }) => reason)).toEqual(['Error: Timeout'])
  })

  test('drop is done at once, and any process of the store can tell', async () => {
    const r = await rig(store, failing({ mended: false }))
    await died(r, 'Timeout', 'No tax')
    const dropped = await act(r, 'drop', { reason: 'timeout' })
    expect(await progress(r, dropped.act)).toMatchObject({ act: 'drop', count: 1, done: 1, open: 0 })
    expect((await r.get('/v1/dead-letters/acts/nothing')).status).toBe(404)
    expect((await reasonsOf(r)).total).toBe(1)
  })

  test('the last 50 acts are kept', async () => {
    const r = await rig(store, failing({ mended: false }))
    const ids: string[] = []
    for (let n = 0; n < 52; n++) {
      ids.push((await act(r, 'drop', { flow: 'bill' })).act)
      await r.t.advance('1s')
    }
    const known = await Promise.all(ids.map(async (id) => (await r.get(`/v1/dead-letters/acts/${id}`)).status))
    expect(known.filter((status) => status === 200)).toHaveLength(50)
    expect(known.slice(0, 2)).toEqual([404, 404])
  })

  test.each([[{}], [{ limit: 1 }], [{ reason: '' }], [{ reason: 'x', limit: 0 }], [{ all: true, reason: 'x' }]])(
    'refuses %j',
    async (body) => {
      const r = await rig(store, failing({ mended: false }))
      expect((await r.post('/v1/dead-letters/retry', body)).status).toBe(400)
    },
  )

  test('an item names its lane', async () => {
    const r = await rig(store, failing({ mended: false }))
    await died(r, 'Timeout')
    const { items } = (await r.get('/v1/dead-letters')).body as { items: readonly { readonly lane: string }[] }
    expect((await r.get(`/v1/lanes/${items[0]?.lane}`)).body).toMatchObject({ state: 'blocked' })
  })
})
