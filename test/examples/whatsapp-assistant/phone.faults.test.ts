// The phone in a real browser: what a person does, and what they see.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { assistant } from '../../../examples/whatsapp-assistant/example.ts'
import { phone } from '../../../examples/whatsapp-assistant/phone.ts'
import type { World } from '../../../examples/whatsapp-assistant/world.ts'
import { serveHandler, type Served } from '../../../examples/kit/http.ts'
import { livePage } from '../../../examples/kit/live-page.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { openBrowser, type OpenBrowser } from '../../browser.ts'
import { startServer, type Server } from '../../postgres/server.ts'

let server: Server
let browser: OpenBrowser
let stage: Stage<World>
let site: Served

beforeAll(async () => {
  browser = await openBrowser()
  server = await startServer({ version: 18 })
  stage = await Stage.open(assistant, { store: server.tcpUrl, workers: 2 })
  site = await serveHandler(livePage(phone(stage)))
}, 300_000)

afterAll(async () => {
  await site.close()
  await stage.close()
  await server.stop()
  await browser.close()
})

/** The share of the ring that is left, from 1 to 0. */
async function ringLeft(page: Page): Promise<number> {
  return 1 - Number(await page.locator('#ring').getAttribute('stroke-dashoffset')) / 100
}

/** Whether the ring is drawn around all of the draft. */
async function isAround(page: Page): Promise<boolean> {
  const boxes = await Promise.all(['#ring', '#when', '#handed-on'].map((id) => page.locator(id).boundingBox()))
  const [ring, ...inside] = boxes.map((box) => box ?? { x: NaN, y: NaN, width: NaN, height: NaN })
  return inside.every(
    (box) =>
      ring !== undefined &&
      ring.x <= box.x &&
      ring.y <= box.y &&
      ring.x + ring.width >= box.x + box.width &&
      ring.y + ring.height >= box.y + box.height,
  )
}

/** The seconds that the page shows in the draft. */
async function secondsLeft(page: Page): Promise<number> {
  return Number(/in ([\d.]+) s/.exec((await page.locator('#when').textContent()) ?? '')?.[1] ?? NaN)
}

async function write(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByLabel('Message').press('Enter')
}

it('shows the wait, the text to hand on, a half-made answer that is struck out, and one answer in the end', async () => {
  const page = await browser.context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  const has = (selector: string, count: number): Promise<void> =>
    expect.poll(() => page.locator(selector).count()).toBe(count)
  const handedOn = (): Promise<string | null> => page.locator('#handed-on').textContent()
  await page.goto(site.url)

  await write(page, 'A table')
  await expect.poll(handedOn).toBe('A table')
  await expect.poll(() => isAround(page)).toBe(true)
  await expect.poll(() => secondsLeft(page)).toBeLessThan(1.5)
  const before = await ringLeft(page)
  await write(page, 'for four')
  await expect.poll(handedOn).toMatch(/^A table\n\[\+\d+s\] for four$/)
  // The ring began anew.
  expect(await ringLeft(page)).toBeGreaterThan(before)
  expect(await isAround(page)).toBe(true)
  const preview = (await handedOn()) ?? ''
  await page.getByRole('button', { name: "Send the provider's retry" }).click()

  await has('li.theirs.making', 1)
  await write(page, 'tonight')
  await has('li.theirs.aborted', 1)
  const decoration = "getComputedStyle(document.querySelector('li.aborted')).textDecorationLine"
  expect(await page.evaluate(decoration)).toBe('line-through')
  await page.getByRole('button', { name: 'Kill the worker' }).click()
  await expect.poll(() => page.locator('#note').textContent()).toBe('1 killed, and replaced')

  await has('li.theirs.sent', 1)
  const answer = (await page.locator('li.theirs.sent').textContent()) ?? ''
  expect(answer).toMatch(/^You wrote: A table\n\[\+\d+s\] for four\n\[\+\d+s\] tonight$/)
  // The page showed the text as it was handed on.
  expect(answer.split('\n').slice(0, 2).join('\n')).toBe(`You wrote: ${preview}`)
  expect(await page.locator('li.mine').allTextContents()).toEqual(['A table', 'for four', 'tonight'])
  await expect.poll(() => page.locator('#draft').isVisible()).toBe(false)
  expect(stage.world.outbox.sent).toHaveLength(1)
  expect(errors).toEqual([])
})

it('does not take the first messages for retries when it is started again on the same store', async () => {
  // Another phone on this stage is what a new process of the page makes.
  const again = await serveHandler(livePage(phone(stage)))
  try {
    const page = await browser.context.newPage()
    await page.goto(again.url)
    await write(page, 'Good morning')
    await expect.poll(() => page.locator('#handed-on').textContent()).toBe('Good morning')
    await expect.poll(() => stage.world.outbox.sent.map(({ text }) => text)).toContain('You wrote: Good morning')
  } finally {
    await again.close()
  }
})
