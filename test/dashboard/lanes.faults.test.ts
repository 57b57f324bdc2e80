// The lanes page and the page of a lane: the picture, the keyboard, and the acts.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { openSite, type Site } from './site.ts'
import { until } from './scene.ts'

let site: Site

beforeAll(async () => {
  site = await openSite()
})
afterEach(() => site.reset())
afterAll(() => site.close())

const rows = (page: Page): Promise<readonly string[]> => page.locator('.lane-row .lane').allInnerTexts()
const stateOf = async (flow: string, key: string): Promise<string> => (await site.scene.app.explain(flow, key)).state

it('lists lanes by what happens next: ready, running, by deadline, then blocked and held', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').first().waitFor()
  const texts = await rows(page)
  const firstOf = (text: RegExp): number => texts.findIndex((row) => text.test(row))
  const order = [/Ready for/, /Running for/, /Due in/, /Slot in/, /Blocked/].map(firstOf)
  expect(order).toEqual(order.toSorted((one, other) => one - other))
  expect(order[0]).toBe(0)
  expect(firstOf(/Held for/)).toBeGreaterThan(firstOf(/Slot in/))
  expect(texts.find((row) => row.includes('Acme Billing'))).toMatch(/Next attempt in/)
})

it('draws each state with marks of its own', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').first().waitFor()
  for (const mark of [
    '.late-marks',
    '.running',
    '.lease',
    '.limited-marks',
    '.failed',
    '.holding',
    '.blocking',
    '.wall',
    '.water',
    '.drop',
  ]) {
    expect([mark, await page.locator(`.lanes-film ${mark}`).count()]).toEqual([mark, expect.any(Number)])
    expect(await page.locator(`.lanes-film ${mark}`).count()).toBeGreaterThan(0)
  }
})

it('opens a row in place with j and k, and its page with Enter', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').first().waitFor()
  await page.keyboard.press('j')
  await page.locator('.lane-open').waitFor()
  expect(await page.locator('.lane-row').first().locator('.lane-open').count()).toBe(1)
  expect(new URL(page.url()).searchParams.get('open')).not.toBeNull()
  await page.keyboard.press('j')
  await page.locator('.lane-row').nth(1).locator('.lane-open').waitFor()
  await page.keyboard.press('k')
  await page.locator('.lane-row').first().locator('.lane-open').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.lane-open').waitFor({ state: 'detached' })
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'What happens next' }).waitFor()
  expect(page.url()).toMatch(/lanes\/[\w-]+$/)
})

it('moves and stops the axis: brackets change the scale, space freezes the picture', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').first().waitFor()
  await page.keyboard.press(']')
  await page.waitForURL(/scale=10m/)
  await page.keyboard.press(']')
  await page.waitForURL(/scale=2h/)
  await page.keyboard.press('[')
  await page.waitForURL(/scale=10m/)
  await page.keyboard.press('Space')
  await page.getByRole('button', { name: 'Follow' }).waitFor()
  expect(await page.locator('.lanes.stopped').count()).toBe(1)
  const moving = "document.querySelector('.glide-past > div').getAnimations()[0].effect.getTiming().duration"
  expect(await page.evaluate(moving)).toBe(1)
  await page.keyboard.press('Space')
  await page.getByRole('button', { name: 'Freeze' }).waitFor()
  expect(await page.evaluate(moving)).toBeGreaterThan(1_000)
})

it('moves all rows with one animation for each of its two layers', async () => {
  const page = await site.open('lanes')
  await page.locator('.lane-row').nth(10).waitFor()
  expect(await page.evaluate('document.querySelector(".lanes").getAnimations({ subtree: true }).length')).toBe(2)
})

it('filters by state, flow and key, and keeps the filter in the address', async () => {
  const page = await site.open('lanes')
  await page.getByRole('button', { name: /^Limited/ }).click()
  await page.waitForURL(/state=limited/)
  await expect.poll(async () => (await rows(page)).every((row) => row.includes('Slot in'))).toBe(true)
  await page.goto(`${site.scene.url}lanes?flow=rank-user`)
  await expect.poll(async () => (await rows(page)).length).toBe(5)
  await page.getByLabel('Key').fill('mir')
  await expect.poll(async () => (await rows(page)).length).toBe(1)
  expect(new URL(page.url()).searchParams.get('key')).toBe('mir')
})

it('shows an event that arrives, without being asked', async () => {
  const page = await site.open('lanes?flow=rank-user&key=kim')
  await page.getByText('No lane matches.').waitFor()
  await site.scene.app.publish({ type: 'page.updated', source: 'notion', data: { key: 'kim' } })
  await page.getByText('Due in').waitFor()
  await site.scene.app.publish({ type: 'page.updated', source: 'notion', data: { key: 'kim' } })
  await expect.poll(async () => (await page.locator('.lane-row .n').first().innerText()).trim()).toBe('2')
})

it('runs a lane now, and holds one with a reason until the hold is ended', async () => {
  const { app } = site.scene
  const page = await site.open('lanes?flow=rank-user&key=cho')
  await page.locator('.lane-row').first().waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('h')
  await page.getByLabel('Reason').fill('looking into it')
  await page.getByRole('button', { name: 'Hold the lane' }).click()
  await page.getByText('by loopback: “looking into it”').first().waitFor()
  expect(await stateOf('rank-user', 'cho')).toBe('held')
  await page.getByRole('button', { name: 'End the hold' }).click()
  await page.getByText('Due in').first().waitFor()
  const done = app.once('run.done')
  await page.getByRole('button', { name: 'Run now' }).click()
  await done
  await until(async () => (await stateOf('rank-user', 'cho')) === 'empty')
  await page.getByText('No lane matches.').waitFor()
})

it('says why a lane waits, what happens next, and which events wait', async () => {
  const lane = (await site.scene.app.admin.lanes.search({ flow: 'rank-user', key: 'ada' })).items[0]
  const page = await site.open(`lanes/${lane?.id}`, { heading: 'ada' })
  await page
    .getByText(/Waits for its window with 4 events: due in .*, at the latest in .* if more events arrive/)
    .first()
    .waitFor()
  await page.getByText('Its window closes').waitFor()
  await page.getByText('It runs with 4 events').waitFor()
  await page.getByText('If nothing more arrives').waitFor()
  await page.getByText('If events keep arriving').waitFor()
  await page.getByText('of flow "rank-user" waits for its window').waitFor()
  const batch = page.locator('.panel', { has: page.getByRole('heading', { name: 'In this batch' }) })
  expect(await batch.locator('tbody tr').count()).toBe(4)
})

it('drops the waiting events of a lane only after a question', async () => {
  const lane = (await site.scene.app.admin.lanes.search({ flow: 'rank-user', key: 'mira' })).items[0]
  const page = await site.open(`lanes/${lane?.id}`, { heading: 'mira' })
  await page.getByRole('button', { name: 'Drop 2…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  expect(await stateOf('rank-user', 'mira')).toBe('waiting')
  await page.getByRole('button', { name: 'Drop 2…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drop 2 events' }).click()
  await page.getByText('This lane holds no event any more.').waitFor()
  expect(await stateOf('rank-user', 'mira')).toBe('empty')
})

it('has at most 60 rows however many lanes exist', async () => {
  await site.scene.app.publish(
    Array.from({ length: 130 }, (_, index) => ({ type: 'push', data: { key: `octo/repo-${index}` } })),
  )
  const page = await site.open('lanes?flow=build')
  await page.getByRole('link', { name: 'The next 50' }).waitFor()
  expect(await page.locator('.lane-row').count()).toBe(50)
  const first = (await rows(page))[0]
  await page.getByRole('link', { name: 'The next 50' }).click()
  await expect.poll(async () => (await rows(page))[0]).not.toBe(first)
  expect(await page.locator('.lane-row').count()).toBe(50)
})
