// Details that an operator relies on: exports, edits, tries, times of secrets, rates that agree, keys and motion.
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { DEAD_LETTERS, until } from './scene.ts'
import { openSite, overflow, type Site } from './site.ts'

let site: Site

beforeAll(async () => {
  site = await openSite()
})
afterEach(() => {
  expect(site.errors).toEqual([])
  return site.reset()
})
afterAll(() => site.close())

interface Exported {
  readonly id: string
  readonly contents: readonly { readonly id: string; readonly data: unknown }[]
}

it('exports the dead letters that the filter finds, with their events', async () => {
  const page = await site.open('dead-letters?flow=invoices')
  await page.locator('.letter-table tbody tr').first().waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('dead-letters.jsonl')
  const lines = readFileSync(await download.path(), 'utf8')
    .trimEnd()
    .split('\n')
  const letters = lines.map((line) => JSON.parse(line) as Exported)
  expect(letters).toHaveLength(DEAD_LETTERS - 1)
  expect(letters.every(({ contents }) => contents[0]?.data !== undefined)).toBe(true)
  await page.getByText(`Saved ${DEAD_LETTERS - 1} dead letters with their events.`).waitFor()
})

it('retries a dead letter with other data, as a new event that names the old one', async () => {
  const { app } = site.scene
  const [letter] = (await app.admin.deadLetters.list({ flow: 'invoices', key: 'cus_B7' })).items
  const page = await site.open(`dead-letters?id=${letter?.id}`)
  await page.getByRole('button', { name: 'Retry with edit…' }).click()
  const field = page.getByLabel('Data of the event')
  const data = await field.inputValue()
  await field.fill('{')
  await page.getByText(/^The data must be JSON/).waitFor()
  const publish = page.getByRole('button', { name: 'Publish 1 event, drop 1 dead letter' })
  expect(await publish.isDisabled()).toBe(true)
  await field.fill(data.replace('true', 'false'))
  const done = app.once('run.done')
  await publish.click()
  expect(await done).toMatchObject({ flow: 'invoices', key: 'cus_B7' })
  await page.getByText('The edited event runs in its lane, and the dead letter is dropped.').waitFor()
  expect((await app.admin.deadLetters.list({ flow: 'invoices', key: 'cus_B7' })).items).toEqual([])
  const edited = await app.admin.events.show(`${letter?.id}-edited`)
  expect(edited?.attributes).toMatchObject({ replaces: letter?.events[0] })
})

it('tries ten events of a plan first', async () => {
  const page = await site.open('replays/new?type=invoice.finalized&into=rank-user')
  await page.getByRole('button', { name: /^Replay 1\d events$/ }).waitFor()
  await page.getByRole('button', { name: 'Try 10 first' }).click()
  await page.waitForURL(/replays\/dashboard-.*-try/)
  const id = decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1) ?? '')
  await until(async () => (await site.scene.app.admin.replays.show(id))?.state === 'done')
  expect(await site.scene.app.admin.replays.show(id)).toMatchObject({ found: 10, scanned: 10 })
})

it('shows when the secret of an endpoint began, and how long both sign during a rotation', async () => {
  const page = await site.open(`endpoints/${site.scene.working}`)
  await page.getByText(/^One secret signs, since/).waitFor()
  await page.getByRole('button', { name: 'Rotate…' }).click()
  await page.getByRole('button', { name: 'Rotate the secret' }).click()
  await page.locator('.secret-times').waitFor()
  const words = await page.locator('.secret-times dl').innerText()
  expect(words.replaceAll(/\s+/g, ' ')).toMatch(/^before until .+ new since \d\d:\d\d:\d\d$/)
})

it('gives the same rates on the overview and on the page of the sources', async () => {
  const overview = await site.open('')
  const sources = await site.open('sources')
  const read = async (): Promise<readonly string[]> => {
    const [way, figure, stage, card] = await Promise.all([
      overview.locator('.ways li', { hasText: 'stripe' }).locator('.rate').innerText(),
      overview.locator('.tile .fig').first().innerText(),
      overview.locator('.stages li').first().innerText(),
      sources.locator('.cards li', { hasText: 'stripe' }).innerText(),
    ])
    const [, ofStage = 'none'] = /(\d+) (?:so far|a minute)/.exec(stage) ?? []
    const [, ofCard = 'none'] = /(\d+) (?:so far|a minute)/.exec(card) ?? []
    return [`${way.trim()} ${/^\d+/.exec(figure)?.[0]}`, `${ofCard} ${ofStage}`]
  }
  // A minute may end between two of the readings.
  await expect
    .poll(async () => {
      const [one, other] = await read()
      return one === other
    })
    .toBe(true)
})

it('links only flows that call under a limit or deliver', async () => {
  const page = await site.open('')
  // `answer` calls under `notion-api`; `orders` posts to the broken endpoint and to the others.
  await expect.poll(() => page.locator('.works .ribbons .link').count()).toBe(3)
})

it('marks a range of rows, and reaches the acts of a row, by keyboard', async () => {
  const page = await site.open('dead-letters')
  await page.locator('.letter-table tbody tr').nth(5).waitFor()
  for (const key of ['j', 'x', 'j', 'j', 'j', 'X']) await page.keyboard.press(key)
  await page.getByText('4 dead letters chosen.').waitFor()
  await page.keyboard.press('.')
  await expect.poll(() => page.evaluate<string>('document.activeElement?.textContent')).toMatch(/^Retry/)
  const lanes = await site.open('lanes')
  await lanes.locator('.lane-row').first().waitFor()
  await lanes.keyboard.press('.')
  await expect.poll(() => lanes.evaluate<boolean>("document.activeElement?.closest('[data-acts]') != null")).toBe(true)
})

it('fits a phone where nothing is declared yet', async () => {
  const page = await site.open('alerts', { width: 400 })
  await page.getByText('No alert is declared.').waitFor()
  expect(await overflow(page)).toBeLessThanOrEqual(0)
})

it('lets an event drop into its lane, unless the reader wants no motion', async () => {
  const { app } = site.scene
  for (const [reducedMotion, name] of [
    ['no-preference', 'drop-in'],
    ['reduce', 'none'],
  ] as const) {
    const page = await site.open('lanes?flow=rank-user')
    await page.emulateMedia({ reducedMotion })
    await page.locator('.lane-row').first().waitFor()
    await app.publish({ type: 'page.updated', source: 'notion', data: { key: 'ada', reducedMotion } })
    const drop = page.locator('.lanes-film .drop.fresh')
    await drop.first().waitFor({ state: 'attached' })
    const style = "getComputedStyle(document.querySelector('.lanes-film .drop.fresh')).animationName"
    expect(await page.evaluate<string>(style)).toBe(name)
    await page.close()
  }
})
