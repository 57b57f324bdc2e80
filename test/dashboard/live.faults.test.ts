// The dashboard while time passes: live traffic, windows that end, and a server that goes away and comes back.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openSite, type Site } from './site.ts'

let site: Site

beforeEach(async () => {
  site = await openSite({ pace: 'live' })
})
afterEach(() => site.close())

it('shows traffic on all lanes, with at most 60 rows and a bounded page', async () => {
  site.scene.traffic(60)
  const page = await site.open('lanes?flow=rank-user')
  await page.locator('.lane-row').nth(20).waitFor()
  const elements = (): Promise<number> => page.evaluate<number>('document.querySelectorAll("*").length')
  const seen = new Set<string>()
  await expect
    .poll(async () => {
      for (const text of await page.locator('.lane-row .next b').allInnerTexts()) seen.add(text.split(' ')[0] ?? '')
      return [...seen].toSorted()
    })
    .toEqual(expect.arrayContaining(['Due', 'Running']))
  expect(await page.locator('.lane-row').count()).toBeLessThanOrEqual(60)
  expect(await elements()).toBeLessThan(12_000)
  // Runs that ended while the page was open stay in the picture.
  await expect.poll(() => page.locator('.lanes-film .ran').count()).toBeGreaterThan(0)
  expect(site.errors).toEqual([])
})

it('says that the server does not answer, stops the picture, and goes on when it is back', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').first().waitFor()
  await page.route('**/v1/**', (route) => route.abort())
  await page.getByText('The server does not answer.').first().waitFor()
  await page.locator('.lanes.stopped').waitFor()
  await page.unroute('**/v1/**')
  await page.locator('.lanes:not(.stopped)').waitFor()
  await expect.poll(() => page.getByText('The server does not answer.').count()).toBe(0)
})
