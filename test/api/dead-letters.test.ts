// Tests dead letters over the API: listing, counting, showing, retrying, dropping and exporting them.
import { describe, expect, test } from 'vitest'
import { OPERATIONS } from './document.ts'
import { rig, STORES, type Rig } from './rig.ts'
import { APP_KEY, declare, ping, seeded } from './seeded.ts'

interface Letter {
  readonly id: string
  readonly flow: string
  readonly events: readonly string[]
  readonly contents: readonly { readonly id: string; readonly data: unknown; readonly body64: string }[]
}

interface Found {
  readonly items: readonly Letter[]
  readonly next?: string
}

interface Walked {
  readonly ids: readonly string[]
  readonly pages: number
  /** The length of the longest page, in characters. */
  readonly longest: number
}

/** Reads all pages. */
async function walked(r: Rig, path: string): Promise<Walked> {
  const ids: string[] = []
  let pages = 0
  let longest = 0
  for (let next: string | undefined = ''; next !== undefined; pages++) {
    const page: Found = (await r.get(`${path}&limit=100&cursor=${next}`)).body
    ids.push(...page.items.map(({ id }) => id))
    longest = Math.max(longest, JSON.stringify(page).length)
    next = page.next
  }
  return { ids, pages, longest }
}

const dead = async (r: Rig, ...users: readonly string[]): Promise<readonly Letter[]> => {
  for (const user of users) await r.t.send({ ...ping(user), type: 'bad' })
  await r.t.advance('1s')
  return ((await r.get('/v1/dead-letters?flow=fails')).body as Found).items
}

describe.each(STORES)('dead letters on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare, { encryptionKey: APP_KEY })

  test('are listed and counted by flow, key, tenant, time and kind', async () => {
    const r = await seeded(store)
    const count = async (query: string): Promise<readonly number[]> => {
      const { items } = (await r.get(`/v1/dead-letters?${query}`, { key: r.read })).body as Found
      const { body } = await r.get(`/v1/dead-letters/count?${query}`, { key: r.read })
      return [items.length, (body as { count: number }).count]
    }
    expect(await count('')).toEqual([6, 6])
    expect(await count('flow=fails')).toEqual([3, 3])
    expect(await count('flow=fails&key=bad-1')).toEqual([1, 1])
    expect(await count('tenant=acme')).toEqual([6, 6])
    expect(await count('tenant=other')).toEqual([0, 0])
    expect(await count('kind=unrouted')).toEqual([3, 3])
    expect(await count('to=2026-01-01T00:00:01Z')).toEqual([2, 2])
  })

  test('are shown with their attempts and events', async () => {
    const r = await opened()
    const [deadLetter] = await dead(r, 'ada')
    expect((await r.get(`/v1/dead-letters/${deadLetter?.id ?? ''}`)).body).toMatchObject({
      kind: 'run',
      flow: 'fails',
      key: 'ada',
      state: 'dead',
      attempts: [{ error: expect.stringContaining('no luck') }],
      contents: [{ id: deadLetter?.events[0], type: 'bad', data: { user: 'ada', n: 0 } }],
    })
  })

  test('an unrouted event is shown with its reason', async () => {
    const r = await opened()
    await r.t.send({ type: 'odd' })
    const { items } = (await r.get('/v1/dead-letters?kind=unrouted')).body as Found
    expect(items).toMatchObject([{ kind: 'unrouted', flow: 'keyless', reason: 'key-failed' }])
    expect((await r.get(`/v1/dead-letters/${items[0]?.id ?? ''}`)).body).toMatchObject({ contents: [{ type: 'odd' }] })
    expect((await r.post(`/v1/dead-letters/${items[0]?.id ?? ''}/drop`)).body).toEqual({ result: 'ok' })
    expect((await r.get('/v1/dead-letters/count?kind=unrouted')).body).toMatchObject({ count: 0 })
  })

  test('retry runs the same run again; drop ends it', async () => {
    const r = await opened()
    const [second, first] = await dead(r, 'ada', 'bob')
    await r.app.admin.flows.pause('fails', { reason: 'a look first', by: 'test' })
    expect((await r.post(`/v1/dead-letters/${first?.id ?? ''}/retry`)).body).toEqual({ result: 'ok' })
    expect((await r.post(`/v1/dead-letters/${first?.id ?? ''}/retry`)).body).toEqual({ result: 'already' })
    await r.app.admin.flows.resume('fails')
    await r.t.advance('1s')
    expect(r.t.runs.filter(({ id }) => id === first?.id)).toHaveLength(2)
    expect((await r.post(`/v1/dead-letters/${second?.id ?? ''}/drop`)).body).toEqual({ result: 'ok' })
    expect((await r.post(`/v1/dead-letters/${second?.id ?? ''}/drop`)).status).toBe(404)
  })

  test('retry and drop with a filter affect all dead letters that match, and no others', async () => {
    const r = await opened()
    await dead(r, 'ada', 'bob', 'eve')
    expect((await r.post('/v1/dead-letters/drop', { flow: 'fails', key: 'bob' })).body).toMatchObject({ count: 1 })
    expect((await r.post('/v1/dead-letters/retry', { flow: 'blocks' })).body).toMatchObject({ count: 3 })
    expect((await r.get('/v1/dead-letters/count?flow=fails')).body).toMatchObject({ count: 2 })
    expect((await r.post('/v1/dead-letters/drop', { key: 'ada' })).status).toBe(400)
    expect((await r.app.admin.audit.list()).items.map(({ what }) => what)).toEqual([
      'not done (REQUEST_INVALID): drop the dead letters of {"key":"ada"}',
      'requested: drop the dead letters of {"key":"ada"}',
      'done (count 3): retry the dead letters of {"flow":"blocks"}',
      'requested: retry the dead letters of {"flow":"blocks"}',
      'done (count 1): drop the dead letters of {"flow":"fails","key":"bob"}',
      'requested: drop the dead letters of {"flow":"fails","key":"bob"}',
    ])
  })

  test.each(['drop', 'retry'])('%s without a filter needs { all: true }', async (act) => {
    const r = await opened()
    await dead(r, 'ada', 'bob')
    for (const body of [{}, { all: false }, { all: true, flow: 'fails' }]) {
      const answer = await r.post(`/v1/dead-letters/${act}`, body)
      expect([answer.status, answer.body]).toMatchObject([400, { code: 'REQUEST_INVALID', fix: expect.any(String) }])
    }
    expect((await r.post(`/v1/dead-letters/${act}`)).body).toMatchObject({
      detail: expect.stringContaining('{"all":true}'),
    })
    expect((await r.app.admin.audit.list()).items).toEqual([])
    expect((await r.post(`/v1/dead-letters/${act}`, { all: true })).body).toMatchObject({ count: 4 })
  })

  test('the count includes retried dead letters that have not ended yet, separately', async () => {
    const r = await opened()
    const [deadLetter] = await dead(r, 'ada')
    await r.app.admin.flows.pause('fails', { reason: 'a look first', by: 'test' })
    await r.post(`/v1/dead-letters/${deadLetter?.id ?? ''}/retry`)
    expect((await r.get('/v1/dead-letters/count?flow=fails')).body).toMatchObject({ count: 1 })
    expect((await r.post('/v1/dead-letters/retry', { flow: 'fails' })).body).toMatchObject({ count: 0 })
    const said = OPERATIONS.find(({ operationId }) => operationId === 'countDeadLetters')?.summary
    expect(said).toBe('Counts the dead letters that match a filter, including retried ones that have not ended yet.')
  })

  test('the export contains the events with their bytes, in pages of the given limit', async () => {
    const r = await opened()
    await dead(r, 'ada', 'bob', 'eve')
    const one = (await r.get('/v1/dead-letters/export?flow=fails&limit=2')).body as Found
    const two = (await r.get(`/v1/dead-letters/export?flow=fails&limit=2&cursor=${one.next ?? ''}`)).body as Found
    const contents = [...one.items, ...two.items].flatMap((deadLetter) => deadLetter.contents)
    expect(contents.map(({ data }) => data)).toEqual(['eve', 'bob', 'ada'].map((user) => ({ user, n: 0 })))
    expect(contents.map(({ body64 }) => Buffer.from(body64, 'base64').toString())).toEqual(
      ['eve', 'bob', 'ada'].map((user) => JSON.stringify({ user, n: 0 })),
    )
    expect([one.items.length, two.items.length, two.next]).toEqual([2, 1, undefined])
  })

  test('a page of the export ends early when it grows too long; the next page continues without a gap', async () => {
    const r = await opened()
    const big = 'x'.repeat(900_000)
    for (let n = 0; n < 15; n++) await r.t.send({ type: 'bad', data: { user: `u${n}`, big } })
    await r.t.advance('1s')
    const { ids, pages } = await walked(r, '/v1/dead-letters/export?flow=fails')
    expect(pages).toBeGreaterThan(2)
    expect(new Set(ids).size).toBe(15)
  })

  test('a page of the export ends after the dead letter that makes it too long, even if the ones before were small', async () => {
    const r = await opened()
    const big = 'x'.repeat(900_000)
    for (let n = 0; n < 16; n++) await r.t.send({ type: 'bad', data: { user: `u${n}`, big } })
    await r.t.advance('1s')
    await dead(r, 'ada', 'bob', 'eve', 'kim', 'lea')
    const { ids, longest } = await walked(r, '/v1/dead-letters/export?flow=fails')
    expect(new Set(ids).size).toBe(21)
    // An export contains each body as data and as bytes, and base64 makes the bytes a third longer.
    expect(longest).toBeLessThan(4 * 1024 * 1024 + 2.4 * big.length)
  })

  test('a page of the list ends early when dead letters have many events; the next page continues without a gap', async () => {
    const r = await opened()
    for (let n = 0; n < 12; n++) {
      await r.app.publish(Array.from({ length: 1_000 }, (_, m) => ({ type: 'bad', data: { user: `u${n}`, m } })))
      await r.t.advance('1s')
    }
    const seen = await walked(r, '/v1/dead-letters?flow=fails')
    expect(seen.pages).toBeGreaterThan(1)
    expect(new Set(seen.ids).size).toBe(seen.ids.length)
    expect(seen.ids).toHaveLength(await r.app.admin.deadLetters.count({ flow: 'fails' }))
    const runs = await walked(r, '/v1/runs?flow=fails')
    expect(runs.pages).toBeGreaterThan(1)
    expect(new Set(runs.ids)).toEqual(new Set(seen.ids))
  })

  test.each(['limit=101', 'limit=0', 'kind=all', 'key=a', 'cursor=-1'])('the export rejects %s', async (query) => {
    const r = await opened()
    expect((await r.get(`/v1/dead-letters/export?${query}`)).status).toBe(400)
  })
})
