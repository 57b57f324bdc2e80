// Events and runs: search as you type, the life of one event, its replay and its copies, and the anatomy of a batch.
import { createHmac } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { SECRET, until } from './scene.ts'
import { openSite, type Site } from './site.ts'

let site: Site

beforeAll(async () => {
  site = await openSite()
  await site.browser.context.grantPermissions(['clipboard-read', 'clipboard-write'])
})
afterEach(() => site.reset())
afterAll(() => site.close())

/** Posts a signed webhook, as Stripe would. */
async function receive(id: string, data: unknown): Promise<number> {
  const body = JSON.stringify({ type: 'invoice.paid', data })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const answer = await fetch(new URL('/in/stripe', site.scene.url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${mac}`,
    },
    body,
  })
  return answer.status
}

async function eventOf(type: string): Promise<string> {
  return (await site.scene.app.admin.events.list({ type })).items[0]?.id ?? ''
}

it('searches as one types, also in payloads, and says how far it looked', async () => {
  const page = await site.open('events')
  await page.getByText('invoice.paid').first().waitFor()
  await page.getByLabel('Search events').fill('Plan 2')
  await page.waitForURL(/q=Plan\+2/)
  await page.getByText('in the payload').first().waitFor()
  await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
  await page.getByText(/All \d+ events were searched/).waitFor()
  await page.getByLabel('Search events').fill('CUS_B1')
  await expect.poll(() => page.locator('tbody mark').first().innerText()).toBe('cus_B1')
  await page.getByLabel('Search events').fill('nowhere at all')
  await page.getByText('No event matches.').waitFor()
})

it('keeps a letter that is typed while the page takes over the letters before it', async () => {
  const page = await site.open('events')
  await page.locator('tbody tr').first().waitFor()
  // The page writes what was typed to its address; the next letter comes at that moment.
  await page.evaluate(`{
    const replace = history.replaceState.bind(history)
    history.replaceState = (...args) => {
      history.replaceState = replace
      replace(...args)
      const field = document.querySelector('input[aria-label="Search events"]')
      field.value += 'd'
      field.dispatchEvent(new InputEvent('input', { bubbles: true }))
    }
  }`)
  await page.getByLabel('Search events').fill('invoice.finalize')
  await expect.poll(() => page.locator('tbody mark').first().innerText()).toBe('invoice.finalized')
  expect(await page.getByLabel('Search events').inputValue()).toBe('invoice.finalized')
})

it('shows an event that arrives while the list is open, and opens it by keyboard', async () => {
  const page = await site.open('events?type=order.created')
  await page.locator('tbody tr').first().waitFor()
  const before = await page.locator('tbody tr').count()
  await site.scene.app.publish({ type: 'order.created', source: 'shopify', subject: 'fresh', data: { order: 99 } })
  await expect.poll(() => page.locator('tbody tr').count()).toBe(before + 1)
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Its life' }).waitFor()
  await page.getByText('fresh').first().waitFor()
})

it('shows the life of an event: where it is done, and where it waits behind a failing batch', async () => {
  const [order] = (await site.scene.app.admin.events.list({ subject: 'order 3' })).items
  const page = await site.open(`events/${order?.id}`)
  await page.getByText(/Done in 2 of its 3 lanes/).waitFor()
  const life = page.locator('.life-row')
  expect(await life.count()).toBe(4)
  await expect.poll(() => life.allInnerTexts()).toContainEqual(expect.stringMatching(/Acme Billing[\s\S]*Retrying/))
  await page.getByRole('heading', { name: 'What it waits behind' }).waitFor()
  await page.getByText('The endpoint returned 503.').first().waitFor()
})

it('shows a request with its receipts, and how it was answered', async () => {
  expect(await receive('msg_1', { key: 'cus_9' })).toBe(202)
  await receive('msg_1', { key: 'cus_9' })
  const [event] = (await site.scene.app.admin.events.list({ source: 'stripe' })).items
  const page = await site.open(`events/${event?.id}`)
  await page.getByText('POST /in/stripe').first().waitFor()
  await page.getByText('Kept out').waitFor()
  await page.getByText('1 duplicate, no second run').waitFor()
  await page.getByRole('button', { name: 'Request' }).click()
  await page.getByText('webhook-id: msg_1').waitFor()
  await page.getByRole('button', { name: /^Receipts/ }).click()
  await page.getByText('duplicate: same bytes').waitFor()
})

it('marks the lines of a payload that changed since the event before', async () => {
  await site.scene.app.publish({
    type: 'doc.changed',
    subject: 'doc 1',
    data: { state: 'open', amount: 0, same: true },
  })
  await site.scene.app.publish({
    type: 'doc.changed',
    subject: 'doc 1',
    data: { state: 'paid', amount: 4_900, same: true },
  })
  const page = await site.open(`events/${await eventOf('doc.changed')}`)
  await page.getByText('was "open"').waitFor()
  await page.getByText('was 0').waitFor()
  expect(await page.locator('.json .changed').count()).toBe(2)
})

it('copies an event as curl that a shell runs as it was, and as a test fixture', async () => {
  await site.scene.app.publish({
    type: 'doc.quoted',
    subject: `it's`,
    data: { text: `a 'quoted' "$HOME" \`id\` \\ line` },
  })
  const page = await site.open(`events/${await eventOf('doc.quoted')}`)
  await page.getByRole('button', { name: 'Copy as curl' }).click()
  await page.getByText('Copied.').waitFor()
  const curl = await page.evaluate<string>('navigator.clipboard.readText()')
  // The shell passes the words on; `printf` instead of `curl` shows what curl would get.
  const words = execFileSync('sh', ['-c', curl.replace(/^curl/, 'printf "%s\\n"')], { encoding: 'utf8' }).split('\n')
  expect(JSON.parse(words.at(-2) ?? '')).toMatchObject({
    type: 'doc.quoted',
    data: { text: `a 'quoted' "$HOME" \`id\` \\ line` },
  })
  await page.getByRole('button', { name: 'Copy as test fixture' }).click()
  await expect
    .poll(() => page.evaluate<string>('navigator.clipboard.readText()'))
    .toMatch(/^await t\.send\(\{\n {2}id: "/)
})

it('replays an event after a question', async () => {
  const { app } = site.scene
  await app.publish({ type: 'invoice.paid', subject: 'again', data: { key: 'cus_again' } })
  await until(async () => (await app.explain('invoices', 'cus_again')).state === 'empty')
  const [event] = (await app.admin.events.list({ subject: 'again' })).items
  const page = await site.open(`events/${event?.id}`)
  await page.getByText(/^Done in its lane/).waitFor()
  await page.getByRole('button', { name: 'Replay…' }).click()
  const done = app.once('run.done')
  await page.getByRole('button', { name: 'Replay 1 event' }).click()
  await page.getByText('The event is placed again in all flows that take it.').waitFor()
  await done
  await until(async () => (await app.admin.runs.list({ flow: 'invoices', key: 'cus_again' })).items.length === 2)
})

it('finds a dead run, shows why it died, and retries it', async () => {
  const { app } = site.scene
  const page = await site.open('runs')
  await page.getByRole('button', { name: 'Dead', exact: true }).click()
  await page.getByText("Cannot read properties of undefined (reading 'tax')").first().waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByText(/Became a dead letter after 1 attempt/).waitFor()
  await page.getByRole('heading', { name: 'The batch' }).waitFor()
  const dead = app.once('run.dead')
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('The dead letter is queued and runs next in its lane.').waitFor()
  await dead
})

it('shows the anatomy of a batch: which events joined, and why the window closed', async () => {
  const { app } = site.scene
  const done = app.once('run.done')
  await app.admin.lanes.runNow('rank-user', 'ada')
  await done
  await until(async () => (await app.admin.runs.list({ flow: 'rank-user', key: 'ada' })).items.length === 1)
  const [run] = (await app.admin.runs.list({ flow: 'rank-user', key: 'ada' })).items
  const page = await site.open(`runs/${run?.id}`)
  await page.getByText(/Handled 4 events in .*, at the first attempt/).waitFor()
  await page.getByText('Somebody ran the lane before its window closed.').waitFor()
  await expect.poll(() => page.locator('.drop-number').count()).toBe(4)
  await page.getByText('page.moved').waitFor()
})

it('searches on by itself for runs of a rare ending', async () => {
  const { app } = site.scene
  const runs = 1_500
  let left = runs
  const ended = new Promise<void>((resolve) => {
    app.on('run.done', ({ flow }) => {
      if (flow !== 'invoices') return
      left -= 1
      if (left === 0) resolve()
    })
  })
  await app.publish(
    Array.from({ length: runs }, (_, index) => ({ type: 'invoice.paid', data: { key: `many_${index}` } })),
  )
  await ended
  const page = await site.open('runs?kind=dead')
  // The first answer has none: it reads a bounded number of runs.
  await expect.poll(() => page.locator('.run-table tbody tr').count()).toBeGreaterThan(20)
  expect(new Set(await page.locator('.run-table .chip').allInnerTexts())).toEqual(new Set(['Dead']))
})
