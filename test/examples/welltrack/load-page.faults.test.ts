// The page of --serve in a real browser: a burst, a worker that is killed in the middle of it, and the figures.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../../examples/kit/database.ts'
import { serveHandler, type Served } from '../../../examples/kit/http.ts'
import { livePage } from '../../../examples/kit/live-page.ts'
import { openPlace, type StorePlace } from '../../../examples/kit/postgres.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { DATABASE } from '../../../examples/welltrack/data/schema.ts'
import { welltrack } from '../../../examples/welltrack/example.ts'
import { loadPage } from '../../../examples/welltrack/load/page.ts'
import type { World } from '../../../examples/welltrack/scenarios/world.ts'
import { openBrowser, type OpenBrowser } from '../../browser.ts'

let place: StorePlace
let browser: OpenBrowser
let stage: Stage<World>
let site: Served

beforeAll(async () => {
  browser = await openBrowser()
  place = await openPlace('postgres')
  stage = await Stage.open(welltrack, { store: place.store, workers: 2 })
  site = await serveHandler(livePage(loadPage(stage)))
}, 300_000)

afterAll(async () => {
  await site.close()
  await stage.close()
  await place.close()
  await browser.close()
})

it('counts what was sent and kept, shows the p99 of the answers, and kills a worker without a loss', async () => {
  const page = await browser.context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  const text = async (id: string): Promise<string> => (await page.locator(`#${id}`).textContent()) ?? ''
  const shows = (id: string, wanted: RegExp, timeout: number): Promise<void> =>
    expect.poll(() => text(id), { timeout }).toMatch(wanted)
  await page.goto(site.url)
  await shows('p99', /^–$/, 20_000)
  expect(await text('verdict')).toBe('')

  await page.getByRole('button', { name: 'Send 1,000 items' }).click()
  // While the people are being connected, and again while their items are pushed.
  await page.getByRole('button', { name: 'Kill the worker' }).click()
  await shows('killed', /^1$/, 60_000)
  await shows('sent', /^1,00\d$/, 60_000)
  await shows('p99', /^[\d,]+ ms$/, 60_000)
  await page.getByRole('button', { name: 'Kill the worker' }).click()
  await shows('killed', /^2$/, 60_000)

  await shows('verdict', /^Nothing is lost: all [\d,]+ metrics are there once, with their newest values\.$/, 120_000)
  const [kept, wanted] = (await text('metrics')).split(' of ')
  expect(kept).toBe(wanted)
  const [malformed, dead] = (await text('dead')).split(', ')
  expect(dead).toBe(malformed)
  expect(Number(malformed)).toBeGreaterThan(0)
  expect(await text('strava')).toBe('10 of 10')
  expect(await text('exceeded')).toBe('0')
  expect(await text('lanes')).toBe('0')
  expect(errors).toEqual([])

  // A metric that is lost is noticed.
  await openDatabase(stage.store, DATABASE).rows("delete from wt_health_metrics where metric_type = 'sleep'")
  await shows('verdict', /metrics are missing/, 20_000)
}, 300_000)
