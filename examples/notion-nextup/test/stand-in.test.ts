// The stand-in under the real client of Notion: what it gives, what it refuses, and how fast it may be called.
import { APIErrorCode, Client, isNotionClientError, LogLevel } from '@notionhq/client'
import { VirtualClock } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { DATA_SOURCE, NotionStandIn, TOKEN } from '../stand-in/notion.ts'
import { closest, mostInASecond } from '../stand-in/rate.ts'
import { serveHandler } from '../../kit/http.ts'
import { person } from './virtual.ts'

/** As `fetch`, for a client in the same process. */
const calling =
  (notion: NotionStandIn): typeof fetch =>
  (url, init) =>
    notion.fetch(new Request(url, init))

const [ada, ben] = [person('ada'), person('ben')]

function open(auth = TOKEN): { notion: NotionStandIn; client: Client; clock: VirtualClock } {
  const clock = new VirtualClock()
  const notion = new NotionStandIn({ clock, rate: 1_000 })
  return { notion, clock, client: new Client({ auth, fetch: calling(notion), retry: false, logLevel: LogLevel.ERROR }) }
}

async function codeOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'fine',
    (error: unknown) => (isNotionClientError(error) ? error.code : error),
  )
}

describe('the stand-in', () => {
  it('filters at the database and gives pages of a hundred', async () => {
    const { notion, client } = open()
    for (let n = 0; n < 250; n++) notion.add({ name: `t${n}`, assignees: [n % 5 === 0 ? ben : ada], importance: n })
    const filter = { property: 'Assignee', people: { contains: ada.id } }
    const sizes: number[] = []
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const from: { start_cursor?: string } = cursor === undefined ? {} : { start_cursor: cursor }
      const answer = await client.dataSources.query({ data_source_id: DATA_SOURCE, filter, ...from })
      sizes.push(answer.results.length)
      cursor = answer.has_more ? answer.next_cursor : null
    }
    expect(sizes).toEqual([100, 100])
  })

  it('knows filters within filters, and what is in the trash is not there', async () => {
    const { notion, client } = open()
    notion.add({ name: 'open', assignees: [ada] })
    notion.add({ name: 'done', assignees: [ada], status: 'Done' })
    notion.add({ name: 'done and ranked', assignees: [ada], status: 'Done', rank: 3 })
    notion.trash(notion.add({ name: 'gone', assignees: [ada] }).id)
    const unfinished = { property: 'Status', status: { does_not_equal: 'Done' } }
    const ranked = { property: 'Queue Rank', number: { is_not_empty: true as const } }
    const answer = await client.dataSources.query({ data_source_id: DATA_SOURCE, filter: { or: [unfinished, ranked] } })
    const names = answer.results.map((page) => JSON.stringify(page).match(/"plain_text":"([^"]*)"/)?.[1])
    expect(names).toEqual(['open', 'done and ranked'])
  })

  it('reads and updates pages, and tells who listens', async () => {
    const { notion, client } = open()
    const { id } = notion.add({ name: 'a', assignees: [ada] })
    const changes: unknown[] = []
    notion.onChange(({ by, properties }) => changes.push([by, properties]))
    await client.pages.update({ page_id: id, properties: { 'Queue Rank': { number: 7 } } })
    expect(await client.pages.retrieve({ page_id: id.replaceAll('-', '') })).toMatchObject({
      id,
      properties: { 'Queue Rank': { number: 7 }, Assignee: { people: [{ id: ada.id, name: 'ada' }] } },
    })
    const { id: bot } = await client.users.me({})
    expect(changes).toEqual([[{ id: bot, bot: true }, ['rAn%5B']]])
  })

  it('refuses what Notion refuses, with its codes', async () => {
    const { notion, client } = open()
    const { id } = notion.add({ name: 'a' })
    const ask = (filter: object): Promise<unknown> =>
      codeOf(client.dataSources.query({ data_source_id: DATA_SOURCE, filter: filter as never }))
    expect(await ask({ property: 'Nothing', number: { equals: 1 } })).toBe(APIErrorCode.ValidationError)
    expect(await ask({ property: 'Importance', people: { contains: 'x' } })).toBe(APIErrorCode.ValidationError)
    expect(await ask({ property: 'Importance', number: { almost: 1 } })).toBe(APIErrorCode.ValidationError)
    const update = (properties: object): Promise<unknown> =>
      codeOf(client.pages.update({ page_id: id, properties: properties as never }))
    expect(await update({ 'Queue Rank': { number: 'one' } })).toBe(APIErrorCode.ValidationError)
    expect(await update({ 'Projected Completion': { date: { start: 'soon' } } })).toBe(APIErrorCode.ValidationError)
    expect(await update({ Rank: { number: 1 } })).toBe(APIErrorCode.ValidationError)
    expect(await codeOf(client.pages.retrieve({ page_id: 'nobody' }))).toBe(APIErrorCode.ObjectNotFound)
    expect(await codeOf(open('wrong').client.users.me({}))).toBe(APIErrorCode.Unauthorized)
  })

  it('answers 429, 529 and 500 when it is told to, with the time to wait', async () => {
    const { notion, client, clock } = open()
    notion.refuse(529, { retryAfter: 2 })
    notion.refuse(500, { path: '/v1/pages' })
    const error: unknown = await client.users.me({}).catch((one: unknown) => one)
    expect(error).toMatchObject({ status: 529, code: APIErrorCode.ServiceOverload })
    expect(new Headers((error as { headers: Headers }).headers).get('retry-after')).toBe('2')
    clock.advance(1_999)
    expect(await codeOf(client.users.me({}))).toBe(APIErrorCode.RateLimited)
    expect(notion.rate.disobeyed).toBe(1)
    clock.advance(1)
    expect(await codeOf(client.users.me({}))).toBe('fine')
    expect(await codeOf(client.pages.retrieve({ page_id: 'x' }))).toBe(APIErrorCode.InternalServerError)
    expect(await codeOf(client.pages.retrieve({ page_id: 'x' }))).toBe(APIErrorCode.ObjectNotFound)
  })

  it('takes three calls in any second, and says so to the fourth', async () => {
    const clock = new VirtualClock()
    const notion = new NotionStandIn({ clock })
    const client = new Client({ auth: TOKEN, fetch: calling(notion), retry: false, logLevel: LogLevel.ERROR })
    const codes: unknown[] = []
    for (const at of [0, 500, 999, 1_000, 1_400]) {
      clock.advance(at - clock.monotonic())
      codes.push(await codeOf(client.users.me({})))
    }
    expect(codes).toEqual(['fine', 'fine', 'fine', 'fine', APIErrorCode.RateLimited])
    expect(mostInASecond(notion.calls.map(({ at }) => at))).toBe(4)
    expect(mostInASecond([0, 999, 1_000, 1_999, 2_000])).toBe(2)
    expect(mostInASecond([])).toBe(0)
    expect(closest([0, 10, 500, 1_020, 1_005], 3)).toBe(1_005)
  })

  it('takes its time, by its clock, over real HTTP too', async () => {
    const clock = new VirtualClock()
    const notion = new NotionStandIn({ clock, latency: [100, 100] })
    const server = await serveHandler(notion.fetch)
    try {
      const client = new Client({ auth: TOKEN, baseUrl: server.url, retry: false })
      let answered = false
      const call = client.users.me({}).then(() => (answered = true))
      await expect.poll(() => notion.calls[0]?.status).toBe(200)
      clock.advance(99)
      expect(answered).toBe(false)
      clock.advance(1)
      await call
    } finally {
      await server.close()
    }
  })
})
