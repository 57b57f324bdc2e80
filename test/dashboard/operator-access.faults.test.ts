// A key that may only read sees the pages of operators without a single act.
import { afterAll, beforeAll, expect, it } from 'vitest'
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

afterAll(() => site.close())

const ACTS =
  /Retry|Drop|Add an endpoint|End all windows|Try now|Send a test|Pause|Resume|Delete|Edit|Rotate|Replay|Plan a replay|Cancel|Create a key|Revoke|Secret of/

it.each(['read', 'operate'] as const)('shows the acts of every page as the role %s allows', async (role) => {
  const { app, broken } = site.scene
  const letter = (await app.admin.deadLetters.list({ flow: 'invoices' })).items[0]
  const page = await site.open('endpoints', { heading: 'Sign in' })
  await page.getByLabel('API key').fill(keys[role])
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Endpoints' }).waitFor()
  for (const [path, text] of [
    ['dead-letters?ask=retry', 'cus_B38'],
    [`dead-letters?id=${letter?.id}`, 'Its event'],
    ['endpoints?new=1', 'Acme Billing'],
    [`endpoints/${broken}?ask=rotate`, 'next in'],
    ['replays', 'No replay yet.'],
    ['replays/new?type=order.created', 'events, oldest first'],
    ['limits', 'Next slots'],
    ['sources/stripe', 'No request was refused.'],
    ['keys?new=1', 'bob'],
  ] as const) {
    await page.goto(site.scene.url + path)
    await page.getByText(text).first().waitFor()
    const acts = page.locator('main :is(button, a.btn)', { hasText: ACTS })
    if (role === 'read') expect(await acts.allInnerTexts(), path).toEqual([])
    else await acts.first().waitFor()
    expect(await page.getByRole('dialog').count(), path).toBe(
      role === 'operate' && /new=1|ask=rotate/.test(path) ? 1 : 0,
    )
  }
  await site.reset()
  await site.browser.context.clearCookies()
})
