// A dead letter is found, understood and retried; then all of the same reason, with the count first and the progress behind it.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { DEAD_LETTERS, until } from './scene.ts'
import { openSite, type Site } from './site.ts'

let site: Site

beforeAll(async () => {
  site = await openSite()
})

afterEach(() => site.reset())
afterAll(() => site.close())

const count = (): Promise<number> => site.scene.app.admin.deadLetters.count({ flow: 'invoices' })

it('finds a dead letter by its reason, and says why it died and what was in it', async () => {
  const page = await site.open('', { heading: 'Overview' })
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Dead letters' }).click()
  const reasons = page.getByRole('table', { name: 'Reasons' })
  await reasons.getByRole('link', { name: /reading 'tax'/ }).click()
  await page.waitForURL(/flow=invoices&reason=/)
  await page.getByRole('row', { name: /cus_B7\b/ }).click()
  await page.waitForURL(/[?&]id=/)
  const letter = page.getByRole('region', { name: 'The dead letter cus_B7' })
  await letter.getByText('1 attempt, one error').waitFor()
  await letter.getByText("TypeError: Cannot read properties of undefined (reading 'tax')").last().waitFor()
  await letter.getByText('"cus_B7"').waitFor()
  // The open row is part of the address: the page can be shared.
  const again = await site.open(page.url().slice(site.scene.url.length))
  await again.getByRole('region', { name: 'The dead letter cus_B7' }).getByText('"cus_B7"').waitFor()
  expect(site.errors).toEqual([])
})

it('tries one first, and shows that it died again', async () => {
  const page = await site.open('dead-letters?flow=invoices')
  await page.getByRole('button', { name: 'Retry all…' }).click()
  await page.getByText(`Retry ${DEAD_LETTERS - 1} dead letters of invoices?`).waitFor()
  await page.getByText('The same failure makes the same dead letters again.').waitFor()
  await page.getByRole('button', { name: 'Try one first' }).click()
  await page.getByText('Retried 1').waitFor()
  await page.getByText('0 done, 1 dead again, 0 to go').waitFor()
  expect(await count()).toBe(DEAD_LETTERS - 1)
  // The question stays open: it can still be answered for all of them.
  await page.getByRole('button', { name: `Retry ${DEAD_LETTERS - 1}` }).waitFor()
  expect(site.errors).toEqual([])
})

it('retries one once the handler is fixed, and drops another', async () => {
  site.scene.repair()
  const [first, second] = (await site.scene.app.admin.deadLetters.list({ flow: 'invoices' })).items
  const page = await site.open(`dead-letters?flow=invoices&id=${first?.id}`)
  await page
    .getByRole('region', { name: /The dead letter/ })
    .getByRole('button', { name: 'Retry', exact: true })
    .click()
  await page.getByText('It is no longer a dead letter.').waitFor()
  expect(await site.scene.app.admin.runs.show(first?.id ?? '')).toMatchObject({ kind: 'done' })
  await page.goto(`${site.scene.url}dead-letters?id=${second?.id}`)
  await page
    .getByRole('region', { name: /The dead letter/ })
    .getByRole('button', { name: 'Drop…' })
    .click()
  await page.getByRole('button', { name: 'Drop 1 dead letter' }).click()
  await page.getByText('Dropped 1.').waitFor()
  expect(await site.scene.app.admin.runs.show(second?.id ?? '')).toMatchObject({ kind: 'dropped' })
  expect(await count()).toBe(DEAD_LETTERS - 3)
})

it('retries those that were chosen', async () => {
  const page = await site.open('dead-letters?flow=invoices')
  for (const index of [0, 1]) await page.getByRole('checkbox', { name: 'Choose this row' }).nth(index).check()
  await page.getByText('2 dead letters chosen.').waitFor()
  await page.getByRole('button', { name: 'Retry 2' }).click()
  await page.getByText('Queued 2 dead letters.').waitFor()
  await until(async () => (await count()) === DEAD_LETTERS - 5)
})

it('retries all that a filter finds, and follows them to the end', async () => {
  const left = DEAD_LETTERS - 5
  const page = await site.open('dead-letters?flow=invoices&reason=tax&ask=retry')
  await page.getByText(`Retry ${left} dead letters of invoices with ‘tax’ in the reason?`).waitFor()
  await page.getByRole('button', { name: `Retry ${left}` }).click()
  await page.getByText(`${left} done, 0 to go`).waitFor()
  await page.waitForURL(/act=/)
  expect(await count()).toBe(0)
  await page.getByText('Nothing matches.').waitFor()
  await page.reload()
  await page.getByText(`${left} done, 0 to go`).waitFor()
  expect(site.errors).toEqual([])
})
