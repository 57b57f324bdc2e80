// Tests lanes over the API: their states, their explanations, and the actions of operators.
import { describe, expect, test } from 'vitest'
import { laneId, keylessLaneId } from '../../src/model/identity.ts'
import { Gate } from '../engine/scene.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { APP_KEY, declare, ping, seeded } from './seeded.ts'
import { ownFile } from '../temporary-folder.ts'

interface Found {
  readonly items: readonly {
    readonly id: string
    readonly flow: string
    readonly key: string
    readonly state: string
  }[]
  readonly next?: string
}

const HOUR = 3_600_000
const late = (user: string): object => ({ ...ping(user), type: 'late' })
const lane = laneId('waits', 'ada')

describe.each(STORES)('lanes on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare, { encryptionKey: APP_KEY })

  test('are listed with their states, newest first, by flow, key and tenant', async () => {
    const r = await seeded(store)
    const list = async (query: string): Promise<readonly string[]> => {
      const { items } = (await r.get(`/v1/lanes?${query}`, { key: r.read })).body as Found
      return items.map(({ flow, key, state }) => `${flow}/${key} ${state}`)
    }
    expect(await list('flow=waits')).toEqual([
      'waits/late-2 waiting',
      'waits/late-1 held',
      'waits/late-0 waiting',
      'waits/ada waiting',
    ])
    expect(await list('flow=blocks&tenant=acme')).toEqual([
      'blocks/bad-2 blocked',
      'blocks/bad-1 blocked',
      'blocks/bad-0 blocked',
    ])
    expect(await list('flow=waits&key=ada')).toEqual(['waits/ada waiting'])
    expect(await list('flow=waits&key=ada&tenant=acme')).toEqual(['waits/ada waiting'])
    expect(await list('flow=waits&key=ada&tenant=other')).toEqual([])
    expect(await list('flow=waits&key=nobody')).toEqual([])
    expect(await list('flow=nothing')).toEqual([])
    expect(await list('flow=nothing&key=ada')).toEqual([])
    expect((await r.get('/v1/lanes?key=ada', { key: r.read })).status).toBe(400)
  })

  test('of a flow without keys are found by the id of their event', async () => {
    const r = await opened()
    const [event] = await r.t.send({ type: 'single' })
    const id = event?.id ?? ''
    const { items } = (await r.get(`/v1/lanes?flow=each&key=${id}`)).body as Found
    expect(items).toMatchObject([{ id: keylessLaneId('each', id), key: id, state: 'waiting' }])
  })

  test('are shown with their deadline, waiting events and hold', async () => {
    const r = await opened()
    await r.t.send([late('ada'), late('ada')] as never)
    expect((await r.get(`/v1/lanes/${lane}`)).body).toMatchObject({
      id: lane,
      flow: 'waits',
      key: 'ada',
      state: 'waiting',
      due: START + HOUR,
      waiting: 2,
      bytes: 40,
    })
    await r.post(`/v1/lanes/${lane}/hold`, { reason: 'a look first', for: '2h' })
    expect((await r.get(`/v1/lanes/${lane}`)).body).toMatchObject({
      state: 'held',
      hold: { reason: 'a look first', by: 'loopback', until: START + 2 * HOUR },
    })
  })

  test('an infinite time is omitted: the deadline of a blocked lane, or the end of an unbounded hold', async () => {
    const r = await seeded(store)
    const show = async (flow: string, key: string): Promise<object> =>
      (await r.get(`/v1/lanes/${laneId(flow, key)}`, { key: r.read })).body
    expect(await show('blocks', 'bad-1')).toMatchObject({ state: 'blocked', blocks: 1 })
    expect(await show('blocks', 'bad-1')).not.toHaveProperty('due')
    expect(await show('waits', 'late-1')).toMatchObject({ hold: { reason: 'asked by support', by: 'ada' } })
    expect(await show('waits', 'late-1')).not.toHaveProperty('hold.until')
  })

  test('a running lane is shown with its run', async () => {
    const gate = new Gate()
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', key: () => 'k', run: () => gate.wait() }))
    await r.t.send(ping('ada'))
    await r.t.advance('1s')
    expect((await r.get(`/v1/lanes/${laneId('f', 'k')}`)).body).toMatchObject({
      state: 'running',
      waiting: 0,
      run: { id: r.t.runs[0]?.id, state: 'running', events: 1, tries: 0, cancel: false, attempts: [] },
    })
    gate.open()
    await r.t.settled()
    expect((await r.get(`/v1/lanes/${laneId('f', 'k')}`)).status).toBe(404)
  })

  test('a lane that waits for its next attempt shows the error of the last one', async () => {
    const r = await rig(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: () => 'k',
        retry: ['1m'],
        run: () => {
          throw new Error('no luck')
        },
      }),
    )
    await r.t.send(ping('ada'))
    await r.t.advance('1s')
    expect((await r.get(`/v1/lanes/${laneId('f', 'k')}`)).body).toMatchObject({
      state: 'retrying',
      run: { state: 'retrying', tries: 1, attempts: [{ error: expect.stringContaining('no luck') }] },
    })
  })

  test('explain returns in one sentence what a lane waits for, by id and by flow and key', async () => {
    const r = await seeded(store)
    const key = { key: r.read }
    for (const { id, flow, key: of } of ((await r.get('/v1/lanes', key)).body as Found).items) {
      const byId = (await r.get(`/v1/lanes/${id}/explain`, key)).body
      const query = new URLSearchParams({ flow, key: of }).toString()
      expect(byId).toMatchObject({ flow, key: of, text: expect.stringMatching(/\.$/) })
      expect((await r.get(`/v1/explain?${query}`, key)).body).toEqual(byId)
    }
    expect((await r.get('/v1/explain?flow=does&key=nobody', key)).body).toMatchObject({ state: 'empty' })
    expect((await r.get('/v1/explain?flow=nothing&key=nobody', key)).body).toMatchObject({ state: 'unknown-flow' })
    expect((await r.get('/v1/explain?flow=does', key)).status).toBe(400)
  })

  test('run-now ends the window, and the lane runs', async () => {
    const r = await opened()
    await r.t.send(late('ada') as never)
    expect((await r.post(`/v1/lanes/${lane}/run-now`)).body).toEqual({ result: 'ok' })
    await r.t.advance('1s')
    expect(r.t.runs).toMatchObject([{ flow: 'waits', ending: 'done' }])
    expect((await r.post(`/v1/lanes/${lane}/run-now`)).status).toBe(404)
  })

  test('drop ends the waiting events', async () => {
    const r = await opened()
    await r.t.send(late('ada') as never)
    expect((await r.post(`/v1/lanes/${lane}/drop`)).body).toEqual({ result: 'ok' })
    await r.t.advance('2h')
    expect(r.t.runs).toEqual([])
  })

  test('hold and unhold stop and continue the claiming of a lane', async () => {
    const r = await opened()
    await r.t.send(late('ada') as never)
    expect((await r.post(`/v1/lanes/${lane}/hold`, { reason: 'wait' })).body).toEqual({ result: 'ok' })
    await r.t.advance('2h')
    expect(r.t.runs).toEqual([])
    expect(r.t.emitted.find(({ name }) => name === 'lane.held')?.payload).toEqual({
      flow: 'waits',
      key: 'ada',
      reason: 'wait',
      by: 'loopback',
    })
    expect((await r.post(`/v1/lanes/${lane}/unhold`)).body).toEqual({ result: 'ok' })
    await r.t.advance('1s')
    expect(r.t.runs).toHaveLength(1)
  })

  test('cancel asks the run to cancel; without a run it fails', async () => {
    const gate = new Gate()
    const run = ({ signal }: { readonly signal: AbortSignal }): Promise<void> => gate.waitFor('', signal)
    const r = await rig(store, (app) =>
      app.flow('f', { on: 'ping', key: () => 'k', window: { quiet: '10s', max: '1h' }, run }),
    )
    const at = `/v1/lanes/${laneId('f', 'k')}`
    await r.t.send(ping('ada'))
    const { status, body } = await r.post(`${at}/cancel`)
    expect([status, (body as { code: string }).code]).toEqual([409, 'CONFLICT'])
    await r.t.advance('11s')
    expect((await r.post(`${at}/run-now`)).body).toEqual({ result: 'running' })
    expect((await r.post(`${at}/cancel`)).body).toEqual({ result: 'ok' })
    await r.t.settled()
    expect(r.t.runs[0]?.ending).toBe('cancelled')
  })

  test.each([
    ['hold', {}],
    ['hold', { reason: '' }],
    ['hold', { reason: 'x', for: 'ever' }],
    ['hold', { reason: 'x', for: '-1s' }],
    ['hold', { reason: 'x', for: 5 }],
    ['hold', { reason: 'x', by: 'somebody else' }],
    ['run-now', { flow: 'waits' }],
  ])('%s refuses %j', async (act, body) => {
    const r = await opened()
    await r.t.send(late('ada') as never)
    expect((await r.post(`/v1/lanes/${lane}/${act}`, body)).status).toBe(400)
    expect((await r.get(`/v1/lanes/${lane}`)).body).toMatchObject({ state: 'waiting' })
  })

  test.each(['short', 'x'.repeat(41), 'a b c d e f g h i j k l m', '..%2F..%2Fkeys%2Fabcdefghij'])(
    'an invalid id in the path gets a 400 or 404: %s',
    async (id) => {
      const r = await opened()
      expect((await r.get(`/v1/lanes/${id}`)).status).toBe(400)
    },
  )
})

test('lanes of a flow that this process does not serve are found and steered too', async () => {
  const file = ownFile()
  const first = await rig(file, declare, { encryptionKey: APP_KEY })
  await first.t.send(late('ada') as never)
  const [event] = await first.t.send({ type: 'single' })
  await first.t.stop()
  const r = await rig(file, () => {})
  for (const [flow, key, id] of [
    ['waits', 'ada', lane],
    ['each', event?.id ?? '', keylessLaneId('each', event?.id ?? '')],
  ] as const) {
    const { items } = (await r.get(`/v1/lanes?flow=${flow}&key=${key}`)).body as Found
    expect(items).toMatchObject([{ id, flow, key, state: 'waiting' }])
    expect((await r.get(`/v1/lanes/${id}/explain`)).body).toMatchObject({ state: 'unknown-flow', flow, key })
    expect((await r.post(`/v1/lanes/${id}/hold`, { reason: 'nobody serves it' })).body).toEqual({ result: 'ok' })
    expect((await r.get(`/v1/lanes/${id}`)).body).toMatchObject({ state: 'held' })
  }
})
