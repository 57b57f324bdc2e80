// The test plan of the design, line by line, on the virtual clock: debounce, first come first served, reruns, the limit,
// refusals, and events without an assignee.
import { describe, expect, it } from 'vitest'
import { mostInASecond } from '../stand-in/rate.ts'
import { actionWebhook } from '../stand-in/webhooks.ts'
import { person, rankOf, virtual, type Virtual, type VirtualOptions } from './virtual.ts'

const [ada, ben, cleo] = [person('ada'), person('ben'), person('cleo')]

async function on(options: VirtualOptions, test: (v: Virtual) => Promise<void>): Promise<void> {
  const v = await virtual(options)
  try {
    await test(v)
  } finally {
    await v.stop()
  }
}

/** Who ran, and when. */
function served({ ranked }: Virtual): readonly (readonly [string, number])[] {
  return ranked.map(({ key, at }) => [key.replace('user-', ''), at])
}

async function stateOf({ t }: Virtual, user: string): Promise<string> {
  return (await t.explain('rank-user', user)).state
}

/** Each write is a call: so many tasks that have never been ranked keep a run busy. */
function manyTasks({ notion }: Virtual, user: typeof ada, n: number): void {
  for (let at = 0; at < n; at++) notion.add({ name: `t${at}`, assignees: [user], importance: at })
}

describe('units', () => {
  it('debounce: waiting, pushed back, ready, running, and gone', () =>
    on({ standIn: { latency: [200, 200] } }, async (v) => {
      const page = v.notion.add({ name: 'a', assignees: [ada] })
      expect(await stateOf(v, ada.id)).toBe('empty')
      await v.edit(page, { importance: 1 }, ada)
      expect(await stateOf(v, ada.id)).toBe('waiting')
      await v.advance(9_000)
      await v.edit(page, { importance: 2 }, ada)
      await v.advance(9_900)
      expect(await stateOf(v, ada.id)).toBe('waiting')
      expect(v.ranked).toEqual([])
      await v.advance(150)
      expect(await stateOf(v, ada.id)).toBe('running')
      await v.advance(1_000)
      expect(await stateOf(v, ada.id)).toBe('empty')
      expect(v.ranked).toMatchObject([{ at: 19_000, ending: 'done', events: [{}, {}] }])
    }))

  it('the line: first ready first served, nobody in it twice, and a re-send is no new event', () =>
    on({}, async (v) => {
      const pages = [ada, ben, cleo].map((user) => v.notion.add({ name: user.name, assignees: [user] }))
      for (const page of [...pages, ...pages.toReversed()]) {
        await v.send(actionWebhook(page))
        await v.advance(100)
      }
      const webhook = actionWebhook(v.notion.add({ name: 'more', assignees: [ben] }))
      expect(await v.send(webhook)).toBe(200)
      const again = { ...webhook, body: webhook.body.replace('"attempt":1', '"attempt":2') }
      expect(again.body).not.toBe(webhook.body)
      expect(await v.send(again)).toBe(200)
      await v.advance(20_000)
      expect(v.told('event.duplicate')).toHaveLength(1)
      expect(served(v)).toEqual([
        ['cleo', 10_300],
        ['ada', 10_500],
        // Ready at 10.6 s; Ada's last call has to wait for its second.
        ['ben', 11_400],
      ])
      expect(v.ranked.at(-1)?.events).toHaveLength(3)
    }))

  it('rerun: an event during a run puts the user at the tail, behind whoever became ready meanwhile', () =>
    on({}, async (v) => {
      manyTasks(v, ada, 20)
      const [page] = v.notion.pages.values()
      const bens = v.notion.add({ name: 'b', assignees: [ben] })
      if (page === undefined) throw new Error('There is no page.')
      await v.edit(page, { importance: 5 }, ada)
      await v.advance(2_000)
      await v.edit(bens, { importance: 5 }, ben)
      await v.advance(9_000)
      // Ada runs since 10 s, with calls for about six seconds; Ben is ready at 12 s.
      expect(await stateOf(v, ada.id)).toBe('running')
      await v.edit(page, { importance: 50 }, ada)
      await v.advance(30_000)
      expect(served(v).map(([user]) => user)).toEqual(['ada', 'ben', 'ada'])
      const [first, second, third] = v.ranked
      expect(second?.at).toBeGreaterThanOrEqual(16_000)
      // Not after another window of ten seconds: only after Ben.
      expect((third?.at ?? 0) - (second?.at ?? 0)).toBeLessThan(2_000)
      expect(third?.id).not.toBe(first?.id)
      expect(rankOf(page)[0]).toBe(1)
    }))

  it('the limit: never more than three calls in any second, and not many fewer', () =>
    on({}, async (v) => {
      for (const user of [ada, ben, cleo]) manyTasks(v, user, 20)
      for (const page of v.notion.pages.values()) await v.send(actionWebhook(page))
      await v.advance(40_000)
      const times = v.notion.calls.map(({ at }) => at)
      expect(times).toHaveLength(63)
      expect(mostInASecond(times)).toBe(3)
      expect(v.notion.calls.every(({ status }) => status === 200)).toBe(true)
      expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan((63 / 2.6) * 1_000)
    }))

  it('the limit as a token bucket: GLOBAL_RPS fills it, TOKEN_BUCKET_CAPACITY is how much it holds', () =>
    on({ env: { GLOBAL_RPS: '2', TOKEN_BUCKET_CAPACITY: '4' }, standIn: { rate: 100 } }, async (v) => {
      manyTasks(v, ada, 11)
      const [page] = v.notion.pages.values()
      if (page !== undefined) await v.send(actionWebhook(page))
      await v.advance(20_000)
      const times = v.notion.calls.map(({ at }) => at - 10_000)
      expect(times.slice(0, 6)).toEqual([0, 0, 0, 0, 500, 1_000])
      expect(times).toHaveLength(12)
    }))
})

describe('integration', () => {
  it('a burst of one user is one run, after the last edit of it', () =>
    on({}, async (v) => {
      const page = v.notion.add({ name: 'a', assignees: [ada] })
      for (let n = 0; n < 8; n++) {
        await v.edit(page, { importance: n }, ada)
        await v.advance(1_500)
      }
      await v.advance(20_000)
      expect(v.ranked).toMatchObject([{ at: 7 * 1_500 + 10_000, ending: 'done' }])
      expect(v.ranked[0]?.events).toHaveLength(8)
      expect(v.notion.calls.map(({ method }) => method)).toEqual(['POST', 'PATCH'])
    }))

  it('U1, U2, U1: the second is served first, since it was still first', () =>
    on({}, async (v) => {
      const [one, two] = [ada, ben].map((user) => v.notion.add({ name: user.name, assignees: [user] }))
      if (one === undefined || two === undefined) throw new Error('There is no page.')
      await v.edit(one, { importance: 1 }, ada)
      await v.advance(1_000)
      await v.edit(two, { importance: 1 }, ben)
      await v.advance(1_000)
      await v.edit(one, { importance: 2 }, ada)
      await v.advance(20_000)
      expect(served(v)).toEqual([
        ['ben', 11_000],
        ['ada', 12_000],
      ])
    }))

  it.each([429, 529])('%i with Retry-After: nobody calls before, and then all goes on', (status) =>
    on({}, async (v) => {
      manyTasks(v, ada, 3)
      manyTasks(v, ben, 3)
      v.notion.refuse(status, { retryAfter: 7 })
      for (const page of v.notion.pages.values()) await v.send(actionWebhook(page))
      await v.advance(60_000)
      expect(v.notion.rate.disobeyed).toBe(0)
      const times = v.notion.calls.map(({ at }) => at)
      expect(times[1]).toBeGreaterThanOrEqual(16_000)
      expect(v.ranked.every(({ ending }) => ending === 'done')).toBe(true)
      expect([...v.notion.pages.values()].every((page) => rankOf(page)[0] !== null)).toBe(true)
      expect(v.told('limit.paused')).toHaveLength(1)
      expect(v.told('run.retry')).toEqual([])
    }),
  )

  it('a pause beyond what a run waits for puts it off: no attempt is used, no slot is held', () =>
    on({}, async (v) => {
      manyTasks(v, ada, 3)
      v.notion.refuse(429, { retryAfter: 90 })
      for (const page of v.notion.pages.values()) await v.send(actionWebhook(page))
      await v.advance(120_000)
      expect(v.notion.rate.disobeyed).toBe(0)
      expect(v.ranked.map(({ ending, attempt }) => [ending, attempt])).toEqual([
        ['deferred', 1],
        ['done', 1],
      ])
      expect(v.ranked[1]?.at).toBeGreaterThanOrEqual(100_000)
    }))

  it('nobody is assigned: skipped and counted', () =>
    on({}, async (v) => {
      expect(await v.send(actionWebhook(v.notion.add({ name: 'of nobody' })))).toBe(200)
      await v.advance(60_000)
      expect(v.t.runs).toEqual([])
      expect(v.told('event.skipped')).toMatchObject([{ flow: 'rank-user', source: 'action' }])
      expect(await v.t.app.admin.metrics()).toContain('sluice_events_skipped_total{flow="rank-user"} 1')
    }))
})
