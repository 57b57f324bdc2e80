// What the design asks for beyond its test plan, on the virtual clock: both kinds of webhooks, faults, restarts, pressure,
// large users, dry runs, the demo mode and the figures.
import { describe, expect, it } from 'vitest'
import { figuresOf, GLOBAL_FIGURES, globalFigures } from '../figures.ts'
import { lifeLog } from '../life-log.ts'
import { BOT } from '../stand-in/notion.ts'
import type { StoredPage, User } from '../stand-in/page.ts'
import { mostInASecond } from '../stand-in/rate.ts'
import { actionWebhook, integrationWebhook, signed } from '../stand-in/webhooks.ts'
import { person, rankOf, START, tellIntegration, virtual, type Virtual, type VirtualOptions } from './virtual.ts'

const [ada, ben, cleo] = [person('ada'), person('ben'), person('cleo')]

async function on(options: VirtualOptions, test: (v: Virtual) => Promise<void>): Promise<void> {
  const v = await virtual(options)
  try {
    await test(v)
  } finally {
    await v.stop()
  }
}

function add({ notion }: Virtual, n: number, ...assignees: readonly User[]): readonly StoredPage[] {
  return Array.from({ length: n }, (_, at) => notion.add({ name: `t${at}`, assignees, importance: at }))
}

function one(pages: readonly StoredPage[]): StoredPage {
  const [first] = pages
  if (first === undefined) throw new Error('There is no page.')
  return first
}

/** How long somebody who edits now will be waited for. */
async function windowOf(v: Virtual, user: User): Promise<number> {
  const before = v.t.elapsed
  await v.send(actionWebhook(one(add(v, 1, user))))
  const lane = await v.t.app.admin.lanes.get('rank-user', user.id)
  return (lane?.due ?? 0) - START - before
}

describe('webhooks', () => {
  it('of the action: every assignee gets a turn, not only the first', () =>
    on({}, async (v) => {
      await v.send(actionWebhook(one(add(v, 1, ada, ben, cleo))))
      await v.advance(20_000)
      expect(v.ranked.map(({ key }) => key).toSorted()).toEqual([ada.id, ben.id, cleo.id])
    }))

  it('of the action: the bare page is taken as well, a wrong secret is not', () =>
    on({}, async (v) => {
      const webhook = actionWebhook(one(add(v, 1, ada)))
      const bare = JSON.stringify((JSON.parse(webhook.body) as { data: unknown }).data)
      expect(await v.send({ ...webhook, body: bare })).toBe(200)
      expect(await v.send({ ...webhook, headers: { ...webhook.headers, 'x-secret': 'guessed' } })).toBe(401)
      await v.advance(20_000)
      expect(v.ranked).toHaveLength(1)
    }))

  it('of the integration: the page is read once it is still, and each assignee hears of it', () =>
    on({}, async (v) => {
      tellIntegration(v)
      const page = one(add(v, 1, ada, ben))
      v.notion.edit(page.id, { importance: 3 }, ada)
      await v.advance(2_000)
      v.notion.edit(page.id, { importance: 4 }, ada)
      await v.advance(60_000)
      expect(v.t.runs.map(({ flow, key, at }) => [flow, key, at])).toEqual([
        ['read-page', page.id, 7_000],
        ['rank-user', ada.id, 17_000],
        ['rank-user', ben.id, expect.any(Number)],
      ])
      expect(v.notion.calls.map(({ method }) => method)).toEqual(['GET', 'POST', 'PATCH', 'POST'])
    }))

  it('of the integration: our own writes wake nobody, and are counted', () =>
    on({}, async (v) => {
      tellIntegration(v)
      const pages = add(v, 5, ada)
      v.notion.edit(one(pages).id, { importance: 30 }, ada)
      await v.advance(600_000)
      expect(v.ranked).toHaveLength(1)
      expect(v.told('event.skipped')).toHaveLength(5)
      expect((await globalFigures(v.t.app)).get('skipped: our own writes, and pages elsewhere')).toBe(5)
    }))

  it('of the integration: a person beside us is heard, other databases are not', () =>
    on({}, async (v) => {
      const page = one(add(v, 1, ada))
      const webhook = integrationWebhook({ page, by: BOT, at: START, properties: [] })
      const body = JSON.parse(webhook.body) as { authors: unknown[]; data: { parent: { data_source_id: string } } }
      body.authors.push({ id: ada.id, type: 'person' })
      for (const parent of ['1a44be1209534631b4989e5817518db8', 'another']) {
        body.data.parent.data_source_id = parent
        expect(await v.send(signed(JSON.stringify({ ...body, id: parent })))).toBe(200)
      }
      await v.advance(60_000)
      expect(v.t.runs.map(({ flow }) => flow)).toEqual(['read-page', 'rank-user'])
      expect(v.told('event.skipped')).toHaveLength(1)
    }))

  it('of the integration: a page that belongs to nobody is read, and that is all', () =>
    on({}, async (v) => {
      tellIntegration(v)
      v.notion.edit(one(add(v, 1)).id, { importance: 3 }, ada)
      await v.advance(60_000)
      expect(v.t.runs).toMatchObject([{ flow: 'read-page', ending: 'done' }])
      expect(v.told('run.done')).toMatchObject([{ counts: { 'without-assignee': 1 } }])
    }))

  it('with demo mode: only the one person', () =>
    on({ env: { DEMO_USER: 'ben' } }, async (v) => {
      tellIntegration(v)
      const page = one(add(v, 1, ada, ben))
      await v.edit(page, { importance: 3 }, ada)
      await v.advance(60_000)
      expect(new Set(v.ranked.map(({ key }) => key))).toEqual(new Set([ben.id]))
    }))
})

describe('faults', () => {
  it('transient: after 250 ms, 1 s and 2 s, then it is a dead letter that can be retried', () =>
    on({}, async (v) => {
      v.notion.refuse(500, { times: 4 })
      await v.send(actionWebhook(one(add(v, 2, ada))))
      await v.advance(30_000)
      expect(v.ranked.map(({ at, ending }) => [at, ending])).toEqual([
        [10_000, 'retry'],
        [10_250, 'retry'],
        [11_250, 'retry'],
        [13_250, 'dead'],
      ])
      const { items } = await v.t.app.admin.deadLetters.list({ flow: 'rank-user' })
      await v.t.app.admin.deadLetters.retry(items[0]?.id ?? '')
      await v.advance(10_000)
      expect(v.ranked.at(-1)).toMatchObject({ ending: 'done', events: [{}] })
    }))

  it('transient: BACKOFF_ settings say how often, and after how long', () =>
    on({ env: { BACKOFF_INITIAL_MS: '500', BACKOFF_MAX_MS: '1500', BACKOFF_RETRIES: '2' } }, async (v) => {
      v.notion.refuse(500, { times: 3 })
      await v.send(actionWebhook(one(add(v, 2, ada))))
      await v.advance(30_000)
      expect(v.ranked.map(({ at, ending }) => [at, ending])).toEqual([
        [10_000, 'retry'],
        [10_500, 'retry'],
        [12_000, 'dead'],
      ])
    }))

  it('transient, while a page is read: the same, and the client tries nothing by itself', () =>
    on({}, async (v) => {
      tellIntegration(v)
      v.notion.refuse(500, { path: '/v1/pages', times: 2 })
      v.notion.edit(one(add(v, 1, ada)).id, { importance: 1 }, ada)
      await v.advance(30_000)
      expect(v.t.runs.map(({ flow, at, ending }) => [flow, at, ending])).toEqual([
        ['read-page', 5_000, 'retry'],
        ['read-page', 5_250, 'retry'],
        ['read-page', 6_250, 'done'],
        ['rank-user', 16_250, 'done'],
      ])
      expect(v.notion.calls.filter(({ method }) => method === 'GET')).toHaveLength(3)
    }))

  it('transient, after some of it was written: goes on from there, and no attempt is used', () =>
    on({}, async (v) => {
      const pages = add(v, 5, ada)
      v.notion.refuse(503, { path: `/v1/pages/${pages[2]?.id}` })
      await v.send(actionWebhook(one(pages)))
      await v.advance(30_000)
      expect(v.ranked.map(({ ending, attempt }) => [ending, attempt])).toEqual([
        ['snoozed', 1],
        ['done', 1],
      ])
      expect(v.notion.calls.filter(({ method }) => method === 'POST')).toHaveLength(1)
      expect(v.notion.calls.filter(({ method }) => method === 'PATCH')).toHaveLength(6)
    }))

  it('permanent: straight to the dead letters, and nobody behind waits for it', () =>
    on({}, async (v) => {
      const [adas, bens] = [one(add(v, 1, ada)), one(add(v, 1, ben))]
      v.notion.refuse(400)
      await v.edit(adas, { importance: 1 }, ada)
      await v.edit(bens, { importance: 1 }, ben)
      await v.advance(30_000)
      expect(v.ranked.map(({ key, ending, at }) => [key, ending, at])).toEqual([
        [ada.id, 'dead', 10_000],
        [ben.id, 'done', 10_000],
      ])
      expect(v.ranked[0]?.error).toBe('PermanentError: Notion: validation_error: As planned.')
      // The next edit is a new chance.
      await v.edit(adas, { importance: 2 }, ada)
      await v.advance(30_000)
      expect(v.ranked.at(-1)).toMatchObject({ key: ada.id, ending: 'done' })
    }))

  it('a page that is deleted between reading and writing is left out', () =>
    on({}, async (v) => {
      const pages = add(v, 4, ada)
      v.notion.refuse(404, { path: `/v1/pages/${pages[1]?.id}` })
      await v.send(actionWebhook(one(pages)))
      await v.advance(30_000)
      expect(v.told('run.done')).toMatchObject([{ counts: { updated: 3, gone: 1 } }])
    }))

  it.each(['memory:', 'sqlite::memory:'])('a crash loses nothing: windows, the line and half a run (%s)', (store) =>
    on({ store }, async (v) => {
      const [adas, bens] = [add(v, 20, ada), add(v, 3, ben)]
      await v.edit(one(adas), { importance: 99 }, ada)
      await v.advance(8_000)
      await v.edit(one(bens), { importance: 99 }, ben)
      await v.advance(4_000)
      expect(v.ranked).toMatchObject([{ key: ada.id, ending: 'running' }])
      await v.t.crash()
      await v.advance(60_000)
      await v.t.restart()
      await v.advance(60_000)
      expect(new Set(v.ranked.filter(({ ending }) => ending === 'done').map(({ key }) => key))).toEqual(
        new Set([ada.id, ben.id]),
      )
      expect(rankOf(one(adas))[0]).toBe(1)
      expect(rankOf(one(bens))[0]).toBe(1)
      expect(mostInASecond(v.notion.calls.map(({ at }) => at))).toBeLessThanOrEqual(3)
    }),
  )
})

describe('pressure', () => {
  it('429s make the debounce longer, up to a minute, and it comes back', () =>
    on({}, async (v) => {
      expect(await windowOf(v, person('u0'))).toBe(10_000)
      v.notion.refuse(429, { retryAfter: 6, times: 3 })
      await v.advance(60_000)
      const pressed = await windowOf(v, person('u1'))
      expect(pressed).toBeGreaterThan(14_000)
      expect(pressed).toBeLessThanOrEqual(60_000)
      await v.advance(600_000)
      expect(await windowOf(v, person('u2'))).toBeLessThan(10_200)
    }))

  it('a line that grows makes it longer as well', () =>
    on({}, async (v) => {
      const users = Array.from({ length: 20 }, (_, n) => person(`u${n}`))
      for (const user of users) await v.send(actionWebhook(one(add(v, 10, user))))
      await v.advance(60_000)
      expect(await windowOf(v, person('late'))).toBeGreaterThan(20_000)
      await v.advance(900_000)
      expect(await windowOf(v, person('later'))).toBeLessThan(10_200)
    }))
})

describe('large users', () => {
  it('2,000 tasks are written in turns: others are served in between, and all is written in the end', () =>
    on({}, async (v) => {
      const large = add(v, 2_000, ada)
      await v.send(actionWebhook(one(large)))
      await v.advance(12_000)
      const waits: number[] = []
      for (let n = 0; n < 5; n++) {
        const user = person(`small${n}`)
        await v.send(actionWebhook(one(add(v, 1, user))))
        await v.advance(60_000)
        const lane = v.told('run.claimed').find(({ key }) => key === user.id)
        waits.push(lane?.late ?? Infinity)
        expect(v.ranked.find(({ key }) => key === user.id)?.ending).toBe('done')
      }
      // One turn of the large one: 30 calls at 2.7 a second.
      expect(Math.max(...waits)).toBeLessThan(12_000)
      await v.advance(900_000)
      const runs = v.ranked.filter(({ key }) => key === ada.id)
      expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
      expect(runs.length).toBeGreaterThan(65)
      expect(runs.at(-1)?.ending).toBe('done')
      expect(large.map((page) => rankOf(page)[0])).toEqual(large.map((_, at) => 2_000 - at))
      expect(mostInASecond(v.notion.calls.map(({ at }) => at))).toBe(3)
    }))
})

describe('what is written', () => {
  it.each([
    // Ten in the morning on Tuesday, a holiday, and midnight to Wednesday where Ben lives.
    [Date.UTC(2026, 0, 6, 10), '2026-01-07', '2026-01-07'],
    // A day later.
    [Date.UTC(2026, 0, 7, 10), '2026-01-07', '2026-01-08'],
    // Friday, and the weekend has begun for Ben.
    [Date.UTC(2026, 0, 9, 10), '2026-01-09', '2026-01-12'],
  ])('ranks, and days in the time zone of the user (%i)', (start, adasDay, bensDay) =>
    on({ start, env: { USER_TIME_ZONES: `{"${ben.id}":"Pacific/Kiritimati"}`, HOLIDAYS: '2026-01-06' } }, async (v) => {
      const [adas, bens] = [one(add(v, 1, ada)), one(add(v, 1, ben))]
      await v.send(actionWebhook(adas))
      await v.send(actionWebhook(bens))
      await v.advance(20_000)
      expect(rankOf(adas)).toEqual([1, adasDay])
      expect(rankOf(bens)).toEqual([1, bensDay])
    }),
  )

  it('only what changed: a second run of the same tasks makes one call', () =>
    on({}, async (v) => {
      const pages = add(v, 3, ada)
      await v.send(actionWebhook(one(pages)))
      await v.advance(20_000)
      const calls = v.notion.calls.length
      await v.send(actionWebhook(one(pages)))
      await v.advance(20_000)
      expect(v.notion.calls.slice(calls).map(({ method }) => method)).toEqual(['POST'])
      await v.edit(one(pages), { status: 'Done' }, ada)
      await v.advance(20_000)
      // The lowest task was done: it loses its rank, and the others keep their ranks.
      expect(v.notion.calls.slice(calls + 1).map(({ method }) => method)).toEqual(['POST', 'PATCH'])
      expect(rankOf(one(pages))[0]).toBeNull()
    }))

  it('nothing in a dry run', () =>
    on({ env: { DRY_RUN: '1' } }, async (v) => {
      const pages = add(v, 3, ada)
      await v.send(actionWebhook(one(pages)))
      await v.advance(20_000)
      expect(v.ranked).toMatchObject([{ ending: 'done' }])
      expect(v.notion.calls.map(({ method }) => method)).toEqual(['POST'])
      expect(pages.map(rankOf)).toEqual([
        [null, null],
        [null, null],
        [null, null],
      ])
    }))

  it('the weighted order, if that is asked for', () =>
    on({ env: { RANKING: 'weighted' } }, async (v) => {
      const important = v.notion.add({ assignees: [ada], importance: 2, estimate: 5 })
      const overdue = v.notion.add({ assignees: [ada], importance: 1, estimate: 5, due: '2026-01-02' })
      await v.send(actionWebhook(important))
      await v.advance(20_000)
      expect([rankOf(overdue)[0], rankOf(important)[0]]).toEqual([1, 2])
    }))
})

describe('figures', () => {
  it('tell the life of a user, and have every figure of the design', () =>
    on({ standIn: { latency: [100, 100] } }, async (v) => {
      const lines: string[] = []
      lifeLog(v.t.app, ({ what, user }) => lines.push(`${what} ${user}`))
      const pages = add(v, 12, ada)
      v.notion.refuse(429, { retryAfter: 1 })
      v.notion.refuse(500)
      await v.edit(one(pages), { importance: 40 }, ada)
      await v.send(actionWebhook(one(add(v, 1))))
      expect(await figuresOf(v.t.app, ada.id, START)).toMatchObject({
        depth: 1,
        readyIn: 10_000,
        processing: undefined,
      })
      await v.advance(16_000)
      await v.edit(one(pages), { importance: 41 }, ada)
      await v.advance(60_000)
      expect(lines).toEqual([
        'skipped -',
        `enqueued ${ada.id}`,
        `dequeued ${ada.id}`,
        `started ${ada.id}`,
        `retries ${ada.id}`,
        `enqueued ${ada.id}`,
        `dequeued ${ada.id}`,
        `started ${ada.id}`,
        `finished ${ada.id}`,
        `requeued ${ada.id}`,
        `enqueued ${ada.id}`,
        `dequeued ${ada.id}`,
        `started ${ada.id}`,
        `finished ${ada.id}`,
        `skipped ${ada.id}`,
      ])
      const figures = await globalFigures(v.t.app)
      expect([...figures.keys()]).toEqual(Object.keys(GLOBAL_FIGURES))
      expect(Object.fromEntries(figures)).toMatchObject({
        'refusals (429, 529)': 1,
        'failed attempts': 1,
        reruns: 1,
        'skipped: nobody assigned': 1,
        'calls (rate() of it is the RPS)': v.notion.calls.length,
      })
      expect(figures.get('waits for a slot, in seconds')).toBeGreaterThan(1)
      expect(await figuresOf(v.t.app, ada.id, START)).toMatchObject({
        depth: 0,
        readyIn: undefined,
        runs: 2,
        reruns: 1,
      })
    }))
})
