// Every page of the dashboard: it opens without an error, is usable without sight or mouse, and fits a phone.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { axe, openSite, overflow, type Site } from './site.ts'

let site: Site
let paths: Readonly<Record<string, string>>

beforeAll(async () => {
  site = await openSite()
  const { app } = site.scene
  const lane = (await app.admin.lanes.search({ flow: 'rank-user', key: 'ada' })).items[0]
  const order = (await app.admin.events.list({ type: 'order.created' })).items[0]
  const run = (await app.admin.runs.list({ flow: 'invoices' })).items[0]
  paths = {
    overview: '',
    lanes: 'lanes',
    'a lane': `lanes/${lane?.id}`,
    events: 'events',
    'an event': `events/${order?.id}`,
    runs: 'runs',
    'a run': `runs/${run?.id}`,
  }
})

afterEach(() => site.reset())
afterAll(() => site.close())

/** Each page with a text that it shows only once its data are there. */
const PAGES: readonly (readonly [string, string])[] = [
  ['overview', 'Acme Billing is down'],
  ['lanes', 'Ready for'],
  ['a lane', 'Waits for its window with'],
  ['events', 'invoice.paid'],
  ['an event', 'safe on disk before the answer'],
  ['runs', 'cus_B38'],
  ['a run', 'Became a dead letter after'],
]

it.each(PAGES)('%s opens without an error, in light and dark', async (name, text) => {
  for (const scheme of ['light', 'dark'] as const) {
    const page = await site.open(paths[name] ?? '', { scheme })
    await page.getByText(text).first().waitFor()
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    expect(await page.title()).toMatch(/ · Sluice$/)
    expect(await axe(page)).toEqual([])
    await page.close()
  }
  expect(site.errors).toEqual([])
})

it.each(PAGES)('%s fits 400 px, without sideways scrolling', async (name, text) => {
  const page = await site.open(paths[name] ?? '', { width: 400 })
  await page.getByText(text).first().waitFor()
  expect(await overflow(page)).toBeLessThanOrEqual(0)
  expect(await axe(page)).toEqual([])
  expect(site.errors).toEqual([])
})

it('has no style attribute and no inline script on any page', async () => {
  for (const [name, text] of PAGES) {
    const page = await site.open(paths[name] ?? '')
    await page.getByText(text).first().waitFor()
    expect(await page.locator('[style]').count()).toBe(0)
    expect(await page.locator('script:not([src])').count()).toBe(0)
    await page.close()
  }
})

it('names the broken endpoint, the dead letters and the exhausted limit on the overview', async () => {
  const page = await site.open('')
  await page.getByText('Acme Billing is down').waitFor()
  await page.getByText('39 dead letters of invoices.').waitFor()
  await page.getByRole('link', { name: /^Dead letters 40/ }).waitFor()
  await page.getByText('notion-api is exhausted.').waitFor()
})

it('shows a page that does not exist as such, and the way back', async () => {
  const page = await site.open('nothing-here', { heading: 'Not found' })
  await page.getByRole('link', { name: 'Open the overview' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})
