// 200 hostile payloads: wherever a sender's bytes are shown, they are text, and nothing in them runs, loads or leads away.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { openSite, overflow, type Site } from './site.ts'
import { until } from './scene.ts'

const RUN = 'globalThis.pwned=1'
const SHAPES: readonly string[] = [
  `<script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg onload="${RUN}">`,
  `<svg><script>${RUN}</script></svg>`,
  `"><script>${RUN}</script>`,
  `'-${RUN}-'`,
  `</textarea><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</style><script>${RUN}</script>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<a href="javascript:${RUN}">click</a>`,
  `javascript:${RUN}`,
  `<math><mtext></mtext><style><img src onerror=${RUN}></style></math>`,
  `<style>*{display:none}</style>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href="//evil.example/">`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`,
  `<form action=//evil.example><button autofocus>ok`,
  `{{constructor.constructor('${RUN}')()}}`,
  '${' + RUN + '}',
  `\u202Egpj.exe\u202C`,
  `a\u0000b\u0007c\u001B[31md`,
  `\u200B\u200B\u200B`,
  'x'.repeat(5_000),
  `${'\u0301'.repeat(500)}z`,
]
const PREFIXES = ['', '&lt;', '"}</script>', '<!--', ']]>', '\\u003c', '%3C', '\uFEFF'] as const
const PAYLOADS = PREFIXES.flatMap((prefix) => SHAPES.map((shape) => prefix + shape))

let site: Site
const requested: string[] = []

beforeAll(async () => {
  site = await openSite({ content: 'empty' })
  const { app } = site.scene
  site.browser.context.on('request', (request) => requested.push(request.url()))
  await app.publish(
    PAYLOADS.map((text, index) => ({
      type: index % 2 === 0 ? 'entry.posted' : 'page.updated',
      source: 'partner',
      subject: text.replaceAll(/[\p{Cc}\uFEFF]/gu, '').slice(0, 200),
      tenant: `t${index}`,
      data: { key: text, [text.slice(0, 100)]: text, broken: index % 2 === 0, nested: [text, { text }] },
    })),
  )
  await until(async () => (await app.admin.deadLetters.count({})) >= PAYLOADS.length / 2)
})

afterAll(() => site.close())

async function expectNothingRan(page: Page): Promise<void> {
  expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
  expect(
    await page.locator('main :is(script, iframe, img, style, link, base, meta, form[action], object, embed)').count(),
  ).toBe(0)
  expect(await page.locator('main a[href^="javascript:" i]').count()).toBe(0)
  expect(await page.evaluate('document.baseURI')).toBe(site.scene.url)
  expect(await overflow(page)).toBeLessThanOrEqual(0)
}

it('has 200 payloads', () => {
  expect(PAYLOADS).toHaveLength(200)
  expect(new Set(PAYLOADS).size).toBe(200)
})

it('shows them as text in lists of events, lanes and runs', async () => {
  for (const [path, row] of [
    ['events', 'tr[data-row]'],
    ['events?q=onerror', 'tr[data-row] mark'],
    ['lanes', '.lane-row'],
    ['runs', 'tr[data-row]'],
    ['dead-letters', 'tr[data-row]'],
    ['dead-letters?reason=422&ask=drop', '.bulk'],
  ] as const) {
    const page = await site.open(path)
    await page.locator(row).first().waitFor()
    await expectNothingRan(page)
    await page.close()
  }
  const page = await site.open('lanes?key=onerror')
  await page.locator('.lane-row').first().waitFor()
  await page.keyboard.press('j')
  await page.locator('.lane-open').waitFor()
  expect(await page.locator('.lane-row b').first().innerText()).toContain('onerror="globalThis.pwned=1"')
  await expectNothingRan(page)
  await page.close()
})

it('shows each of them as text on the page of its event', async () => {
  const { app } = site.scene
  const { items } = await app.admin.events.list({ source: 'partner' }, '', 500)
  expect(items).toHaveLength(PAYLOADS.length)
  const page = await site.open('events')
  for (const { id } of items) {
    await page.evaluate(`history.pushState(null, '', 'events/${id}'); dispatchEvent(new PopStateEvent('popstate'))`)
    await page.locator('.top .mono', { hasText: id }).waitFor()
    await page.locator('.json > div').nth(2).waitFor()
    await expectNothingRan(page)
  }
  await page.close()
})

it('shows them as text on the pages of a lane and of a run', async () => {
  const { app } = site.scene
  const lanes = (await app.admin.lanes.search({ flow: 'rank-user' }, '', 8)).items
  const runs = (await app.admin.runs.list({ flow: 'ledger' }, '', 8)).items
  for (const path of [...lanes.map(({ id }) => `lanes/${id}`), ...runs.map(({ id }) => `runs/${id}`)]) {
    const page = await site.open(path)
    await page.locator('.why').waitFor()
    await expectNothingRan(page)
    await page.close()
  }
})

it('shows them as text in dead letters', async () => {
  const { items } = await site.scene.app.admin.deadLetters.list({}, '', 30)
  const page = await site.open('dead-letters')
  for (const { id } of items) {
    await page.evaluate(
      `history.pushState(null, '', 'dead-letters?id=${id}'); dispatchEvent(new PopStateEvent('popstate'))`,
    )
    await page.locator(`.letter-facts a[href="runs/${id}"]`).waitFor()
    await page.locator('.letter-payload .json > div').nth(2).waitFor()
    await expectNothingRan(page)
  }
  await page.close()
})

it('asked no other host for anything, and broke no rule of its policy', () => {
  const { origin } = new URL(site.scene.url)
  expect(requested.length).toBeGreaterThan(10)
  expect(requested.filter((url) => new URL(url).origin !== origin)).toEqual([])
  expect(site.errors).toEqual([])
})
