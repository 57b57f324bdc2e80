// The alert storm in a real browser: what a person does, and what they see.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { opikAlerts } from '../../../examples/opik-alerts/example.ts'
import { storm } from '../../../examples/opik-alerts/storm.ts'
import type { World } from '../../../examples/opik-alerts/world.ts'
import { serveHandler, type Served } from '../../../examples/kit/http.ts'
import { livePage } from '../../../examples/kit/live-page.ts'
import { openPlace, type StorePlace } from '../../../examples/kit/postgres.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { openBrowser, type OpenBrowser } from '../../browser.ts'

let place: StorePlace
let browser: OpenBrowser
let stage: Stage<World>
let site: Served

beforeAll(async () => {
  browser = await openBrowser()
  place = await openPlace('sqlite')
  stage = await Stage.open(opikAlerts, { store: place.store })
  site = await serveHandler(livePage(storm(stage)))
}, 120_000)

afterAll(async () => {
  await site.close()
  await stage.close()
  await place.close()
  await browser.close()
})

it('1,000 errors are one card with the count, and without debouncing each error is a card', async () => {
  const page = await browser.context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  const text = (selector: string): Promise<string | null> => page.locator(selector).textContent()
  await page.goto(site.url)

  await page.getByRole('button', { name: 'Fire 1,000 errors' }).click()
  await expect.poll(() => text('#happened')).toBe('1,000')
  await expect.poll(() => text('#waiting')).toBe('1,000')
  await expect.poll(() => text('#window')).toMatch(/^The window ends in [0-4]\.\d s\.$/)
  expect(await page.locator('#cards li').count()).toBe(0)
  await expect.poll(() => page.locator('#cards li').count(), { timeout: 20_000 }).toBe(1)
  expect(await text('#cards li strong')).toBe('Errors in production')
  expect(await text('#cards li')).toMatch(/1,000 new Trace Errors events.*and 990 more/)
  await expect.poll(() => text('#window')).toBe('')

  await page.getByLabel('Debouncing').uncheck()
  await expect.poll(() => page.getByLabel('Debouncing').isChecked()).toBe(false)
  await page.getByRole('button', { name: 'Fire one error' }).click()
  await page.getByRole('button', { name: 'Fire one error' }).click()
  await expect.poll(() => page.locator('#cards li').count(), { timeout: 20_000 }).toBe(3)
  expect(await text('#messages')).toBe('3')
  expect(await page.locator('#cards li').last().textContent()).toContain('1 new Trace Errors event')
  expect(errors).toEqual([])
})
