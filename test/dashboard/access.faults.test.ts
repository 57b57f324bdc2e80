// Who sees what: the sign-in and the way back, a session that ends, and a key that may only read.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { openSite, type Site } from './site.ts'

let site: Site
let keys: { readonly operate: string; readonly read: string }

beforeAll(async () => {
  site = await openSite()
  const { app } = site.scene
  const { secret: operate } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  const { secret: read } = await app.admin.keys.create({ name: 'bob', role: 'read' })
  keys = { operate, read }
})

afterEach(async () => {
  await site.reset()
  await site.browser.context.clearCookies()
})
afterAll(() => site.close())

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

it('leads back to the same address after the sign-in', async () => {
  const page = await site.open('lanes?flow=rank-user&scale=10m', { heading: 'Sign in' })
  await signIn(page, keys.operate)
  await page.getByRole('heading', { level: 1, name: 'Lanes' }).waitFor()
  expect(page.url()).toBe(`${site.scene.url}lanes?flow=rank-user&scale=10m`)
  await page.getByText('Due in').first().waitFor()
  const cookies = await site.browser.context.cookies()
  expect(cookies).toMatchObject([{ name: 'sluice-session', httpOnly: true, sameSite: 'Strict' }])
})

it('says what is wrong with a wrong key, and keeps nobody signed in', async () => {
  const page = await site.open('', { heading: 'Sign in' })
  await signIn(page, 'wrong')
  await page.getByText('This key is not valid').waitFor()
  expect(await site.browser.context.cookies()).toEqual([])
})

it('asks for a key again when the session ends, then goes on where it was', async () => {
  const page = await site.open('events?source=stripe', { heading: 'Sign in' })
  await signIn(page, keys.operate)
  await page.getByText('invoice.paid').first().waitFor()
  await site.browser.context.clearCookies()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  await signIn(page, keys.operate)
  await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
  expect(page.url()).toBe(`${site.scene.url}events?source=stripe`)
})

it('shows no act to a key that may only read', async () => {
  const { app } = site.scene
  const lane = (await app.admin.lanes.search({ flow: 'rank-user', key: 'ada' })).items[0]
  const run = (await app.admin.runs.list({ flow: 'invoices' })).items[0]
  const event = (await app.admin.events.list({ type: 'order.created' })).items[0]
  const acts = /^(Run now|Hold…|Drop \d|Retry$|Replay…|Cancel the run|End the hold)/
  for (const [key, count] of [
    [keys.read, 0],
    [keys.operate, 1],
  ] as const) {
    const page = await site.open(`lanes/${lane?.id}`, { heading: 'Sign in' })
    await signIn(page, key)
    await page.getByText('Waits for its window with').first().waitFor()
    expect(await page.getByRole('button', { name: acts }).count()).toBeGreaterThanOrEqual(count)
    if (count === 0) expect(await page.getByRole('button', { name: acts }).count()).toBe(0)
    for (const [path, text] of [
      [`runs/${run?.id}`, 'Became a dead letter after'],
      [`events/${event?.id}`, 'How it ended'],
      [`lanes?open=${lane?.id}`, 'Waits for its window with'],
    ] as const) {
      await page.goto(site.scene.url + path)
      await page.getByText(text).first().waitFor()
      if (count === 0) expect(await page.getByRole('button', { name: acts }).count()).toBe(0)
      else await page.getByRole('button', { name: acts }).first().waitFor()
    }
    await site.reset()
    await site.browser.context.clearCookies()
  }
})

it('refuses the act of a key whose role was too low, and says so', async () => {
  const { app } = site.scene
  const lane = (await app.admin.lanes.search({ flow: 'rank-user', key: 'otto' })).items[0]
  const page = await site.open('lanes', { heading: 'Sign in' })
  await signIn(page, keys.read)
  await page.getByText('Due in').first().waitFor()
  const status = await page.evaluate<number>(
    `fetch('v1/lanes/${lane?.id}/run-now', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then((answer) => answer.status)`,
  )
  expect(status).toBe(403)
  expect((await app.explain('rank-user', 'otto')).state).toBe('waiting')
})
