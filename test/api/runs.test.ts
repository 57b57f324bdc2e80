// Tests ended runs over the API, with their attempts.
import { describe, expect, test } from 'vitest'
import { laneId } from '../../src/model/identity.ts'
import { rig, START, STORES } from './rig.ts'
import { ping, seeded } from './seeded.ts'

interface Found {
  readonly items: readonly { readonly id: string; readonly flow: string; readonly key: string; readonly kind: string }[]
}

describe.each(STORES)('runs on %s', (store) => {
  test('are listed newest first, by flow, key, lane, tenant and time', async () => {
    const r = await seeded(store)
    const list = async (query: string): Promise<readonly string[]> => {
      const { body, status } = await r.get(`/v1/runs?limit=1000&${query}`, { key: r.read })
      expect([query, status]).toEqual([query, 200])
      return (body as Found).items.map(({ flow, key, kind }) => `${flow}/${key} ${kind}`)
    }
    expect(await list('flow=fails')).toEqual(['fails/bad-2 dead', 'fails/bad-1 dead', 'fails/bad-0 dead'])
    expect(await list('flow=fails&key=bad-1')).toEqual(['fails/bad-1 dead'])
    expect(await list(`lane=${laneId('fails', 'bad-1')}`)).toEqual(['fails/bad-1 dead'])
    expect(await list(`flow=does&lane=${laneId('fails', 'bad-1')}`)).toEqual([])
    expect(await list(`flow=fails&from=${START + 1_000}&to=${START + 2_000}`)).toEqual(['fails/bad-1 dead'])
    expect(new Set(await list('tenant=acme&flow=does'))).toEqual(new Set(['does/ada done']))
    expect(await list('tenant=nobody')).toEqual([])
    expect(await list('flow=nothing')).toEqual([])
  })

  test('are shown with their events and failed attempts', async () => {
    const r = await rig(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: () => 'k',
        retry: ['1m', '1m'],
        run: ({ attempt }) => {
          if (attempt < 3) throw new Error(`no luck ${attempt}`)
        },
      }),
    )
    const [event] = await r.t.send({ ...ping('ada'), id: 'one' })
    expect(event?.id).toBe('one')
    await r.t.advance('10m')
    const id = r.t.runs[0]?.id ?? ''
    expect((await r.get(`/v1/runs/${id}`)).body).toMatchObject({
      id,
      lane: laneId('f', 'k'),
      flow: 'f',
      key: 'k',
      kind: 'done',
      tries: 2,
      events: ['one'],
      attempts: [{ error: expect.stringContaining('no luck 1') }, { error: expect.stringContaining('no luck 2') }],
    })
  })

  test('a run that has not ended is not listed', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', run: () => promise }))
    await r.t.send(ping('ada'))
    await r.t.advance('1s')
    const id = r.t.runs[0]?.id ?? ''
    expect((await r.get(`/v1/runs/${id}`)).status).toBe(404)
    resolve()
    await r.t.settled()
    expect((await r.get(`/v1/runs/${id}`)).status).toBe(200)
  })

  test.each(['key=ada', 'flow=f&key=a&lane=aaaaaaaaaaaaaaaaaaaaaa', 'lane=a', 'from=never', 'kind=over'])(
    'the list rejects %s',
    async (query) => {
      const r = await rig(store, () => {})
      expect((await r.get(`/v1/runs?${query}`)).status).toBe(400)
    },
  )
})
