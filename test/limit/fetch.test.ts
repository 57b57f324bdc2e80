// M3, M4: the drop-in fetch waits for slots, reacts to a 429, and retries only what it is allowed to and can.
import { describe, expect, it } from 'vitest'
import { createLimit, type Limit, type LimitOptions, type LimitDependencies } from '../../src/limit/limit.ts'
import { inRun, rig, STORES, type Rig } from './rig.ts'

const THINGS = 'https://api.test/things'

interface Sent {
  readonly at: number
  readonly init: RequestInit | undefined
}

type Answer = [status: number, headers?: Record<string, string>]

/** A limit in front of an API that returns these responses, then 200. */
function against(
  t: Rig,
  answers: Answer[],
  own: Partial<LimitOptions> = {},
  parts: Partial<LimitDependencies> = {},
): { limit: Limit; sent: Sent[] } {
  const sent: Sent[] = []
  const fetch: typeof globalThis.fetch = (_input, init) => {
    sent.push({ at: t.clock.monotonic(), init })
    const [status, headers = {}] = answers.shift() ?? [200]
    return Promise.resolve(new Response('body', { status, headers }))
  }
  return { limit: createLimit('api', { rate: 10, per: '1s', ...own }, t.process({ fetch, ...parts })), sent }
}

describe.each(STORES)('on %s', (kind) => {
  it('M4 each request has its slot, and is sent unchanged', async () => {
    const t = await rig(kind)
    const { limit, sent } = against(t, [], { rate: 1 })
    const { fetch } = limit
    const init = { method: 'POST', body: 'x' }
    const responses = await t.until(Promise.all([fetch(THINGS, init), fetch(THINGS)]))
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect(sent.map(({ at }) => at)).toEqual([0, 1_100])
    expect(sent[0]?.init).toBe(init)
    expect(t.emitted).toEqual([])
  })

  const start = Date.UTC(2026, 0, 1)
  const date = (ms: number): string => new Date(start + ms).toUTCString()

  it.each<[string, Answer, number | undefined]>([
    ['429 with seconds', [429, { 'retry-after': '30' }], 30_000],
    ['503 with seconds', [503, { 'retry-after': '5' }], 5_000],
    ['529 with seconds', [529, { 'retry-after': '5' }], 5_000],
    ['429 with a date', [429, { 'retry-after': date(20_000) }], 20_000],
    ['429 with a date by a clock of its own', [429, { 'retry-after': date(90_000), date: date(60_000) }], 30_000],
    ['429 with a date of the old form', [429, { 'retry-after': 'Thu Jan  1 00:00:40 2026' }], 40_000],
    ['429 with a date of the older form', [429, { 'retry-after': 'Thursday, 01-Jan-26 00:00:40 GMT' }], 40_000],
    ['429 with a date that is over', [429, { 'retry-after': date(-20_000) }], 0],
    ['429 with more than a day', [429, { 'retry-after': '9999999' }], 86_400_000],
    ['429 with nonsense', [429, { 'retry-after': '-5' }], 1_000],
    ['429 alone', [429], 1_000],
    ['503 alone', [503], undefined],
    ['529 with nonsense', [529, { 'retry-after': 'soon' }], undefined],
    ['500 with seconds', [500, { 'retry-after': '5' }], undefined],
    ['200 with seconds', [200, { 'retry-after': '5' }], undefined],
  ])('M3 %s', async (_name, answer, paused) => {
    const t = await rig(kind)
    const { limit } = against(t, [answer])
    const response = await limit.fetch(THINGS)
    expect([response.status, await response.text()]).toEqual([answer[0], 'body'])
    const told = [
      ['limit.paused', { limit: 'api', ms: paused }],
      ['limit.slowed', { limit: 'api' }],
    ]
    expect(t.emitted).toEqual(paused === undefined ? [] : told)
    const shown = (await t.store.stats()).limits.find(({ name }) => name === 'api')
    expect(shown?.pausedUntil ?? 0).toBe(paused === undefined ? 0 : start + paused)
  })

  it('M3 a 429 in one process delays the others', async () => {
    const t = await rig(kind)
    const here = against(t, [[429, { 'retry-after': '3' }]])
    const there = against(t, [])
    await here.limit.fetch(THINGS)
    await t.until(there.limit.fetch(THINGS))
    expect(there.sent.map(({ at }) => at)).toEqual([3_000])
  })

  it('M3 a 429 in a run adds pressure to its flow; other statuses, and calls outside runs, do not', async () => {
    const t = await rig(kind)
    const level = async (): Promise<number | undefined> =>
      (await t.store.updatePressure({ flows: [{ flow: 'rank', raise: false }] })).levels[0]
    await against(t, [[429, { 'retry-after': '0' }]]).limit.fetch(THINGS)
    await inRun(() => against(t, [[503, { 'retry-after': '0' }]]).limit.fetch(THINGS))
    expect(await level()).toBe(0)
    await inRun(() => against(t, [[429, { 'retry-after': '0' }]]).limit.fetch(THINGS))
    expect(await level()).toBe(0.25)
  })

  it('M4 it retries nothing by default', async () => {
    const t = await rig(kind)
    const { limit, sent } = against(t, [[429, { 'retry-after': '1' }]])
    expect((await limit.fetch(THINGS)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  it('M4 it retries a 429 as often as configured, each time in a slot after the pause', async () => {
    const t = await rig(kind)
    const refused: Answer = [429, { 'retry-after': '2' }]
    const { limit, sent } = against(t, [refused, refused], { retries: 2 })
    expect((await t.until(limit.fetch(THINGS, { method: 'POST', body: 'x' }))).status).toBe(200)
    expect(sent.map(({ at }) => at)).toEqual([0, 2_000, 4_000])
    expect(t.asked[0]?.requests[0]?.ticket).not.toBe(t.asked[1]?.requests[0]?.ticket)
    const again = against(t, [refused, refused, refused], { retries: 2 })
    expect((await t.until(again.limit.fetch(THINGS))).status).toBe(429)
    expect(again.sent).toHaveLength(3)
  })

  it('M4 it does not retry a stream, nor a 429 without a time', async () => {
    const t = await rig(kind)
    const refused: Answer = [429, { 'retry-after': '1' }]
    const stream = new Blob(['x']).stream()
    const first = against(t, [refused], { retries: 1 })
    expect((await first.limit.fetch(THINGS, { method: 'POST', body: stream, duplex: 'half' })).status).toBe(429)
    await t.pass(2_000, 500)
    const request = new Request(THINGS, { method: 'POST', body: 'x' })
    const second = against(t, [refused], { retries: 1 })
    expect((await t.until(second.limit.fetch(request))).status).toBe(429)
    await t.pass(2_000, 500)
    const third = against(t, [[503]], { retries: 1 })
    expect((await t.until(third.limit.fetch(THINGS))).status).toBe(503)
    expect([first.sent.length, second.sent.length, third.sent.length]).toEqual([1, 1, 1])
  })

  it.each(['run', 'own'] as const)('M4 a request of a run ends with the %s signal', async (whose) => {
    const t = await rig(kind)
    const { limit, sent } = against(t, [])
    const stop = { run: new AbortController(), own: new AbortController() }
    const { signal } = stop.own
    await inRun(() => limit.fetch(THINGS, { signal }), { signal: stop.run.signal })
    await inRun(() => limit.fetch(new Request(THINGS, { signal })), { signal: stop.run.signal })
    await inRun(() => limit.fetch(new Request(THINGS, { signal }), { signal: null }), { signal: stop.run.signal })
    expect(sent.map(({ init }) => init?.signal?.aborted)).toEqual([false, false, false])
    stop[whose].abort()
    expect(sent.map(({ init }) => init?.signal?.aborted)).toEqual([true, true, whose === 'run'])
  })

  it('M3 if the store cannot record the pause, the caller still gets the response', async () => {
    const t = await rig(kind)
    const good = t.process()
    let opened = 0
    const store = (): ReturnType<typeof good.store> =>
      opened++ === 0 ? good.store() : Promise.reject(new Error('gone'))
    const { limit } = against(t, [[429]], {}, { store })
    expect((await limit.fetch(THINGS)).status).toBe(429)
    expect(t.emitted).toEqual([])
  })
})
