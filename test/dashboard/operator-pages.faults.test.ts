// The pages of operators: each opens without an error, is usable without sight or mouse, fits a phone, and offers no act to a
// key that may only read.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { axe, openSite, overflow, type Site } from './site.ts'

let site: Site
let paths: Readonly<Record<string, string>>

beforeAll(async () => {
  site = await openSite({ hasAlert: true })
  const { app, url, broken, working } = site.scene
  await refuse(url)
  const letter = (await app.admin.deadLetters.list({ flow: 'invoices' })).items[0]
  const blocking = (await app.admin.deadLetters.list({ flow: 'ledger' })).items[0]
  const replay = await app.admin.replays.start({ type: 'page.updated' }, { rate: 1, per: '1h', into: ['rank-user'] })
  paths = {
    'dead letters': 'dead-letters',
    'a dead letter': `dead-letters?flow=invoices&ask=retry&id=${letter?.id}`,
    'a blocking dead letter': `dead-letters?id=${blocking?.id}`,
    'unrouted events': 'dead-letters?kind=unrouted',
    endpoints: 'endpoints',
    'a new endpoint': 'endpoints?new=1',
    'a broken endpoint': `endpoints/${broken}`,
    'a working endpoint': `endpoints/${working}`,
    'a rotation': `endpoints/${working}?ask=rotate`,
    'a filter': `endpoints/${working}?edit=filter`,
    'a transformation': `endpoints/${working}?edit=transform`,
    replays: 'replays',
    'a replay': `replays/${replay.id}`,
    'a plan': 'replays/new?type=order.created',
    limits: 'limits',
    'a limit': 'limits/notion-api',
    sources: 'sources/stripe',
    'no source': 'sources/-',
    alerts: 'alerts',
    audit: 'audit',
    keys: 'keys',
  }
})

afterEach(() => site.reset())
afterAll(() => site.close())

/** Three requests with a wrong signature, and one to a path that no source has. */
async function refuse(url: string): Promise<void> {
  for (const path of ['/in/stripe', '/in/stripe', '/in/stripe', '/in/nowhere']) {
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': `${Math.floor(Date.now() / 1_000)}`,
      'webhook-signature': 'v1,AAAA',
    }
    await fetch(new URL(path, url), { method: 'POST', headers, body: '{"livemode":false}' })
  }
}

/** Each page with a text that it shows only once its data are there. */
const PAGES: readonly (readonly [string, string | RegExp])[] = [
  ['dead letters', 'cus_B38'],
  ['a dead letter', 'Its event'],
  ['a blocking dead letter', 'Blocks its lane'],
  ['unrouted events', 'No unrouted events.'],
  ['endpoints', 'Acme Billing'],
  ['a new endpoint', 'Add the endpoint'],
  ['a broken endpoint', 'next in'],
  ['a working endpoint', 'It takes what we send'],
  ['a rotation', 'stays valid for a day'],
  ['a filter', 'Save the filter'],
  ['a transformation', 'What would be posted'],
  ['replays', 'page.updated'],
  ['a replay', 'Cancel the replay'],
  ['a plan', 'Replay 7 events'],
  ['limits', 'Next slots'],
  ['a limit', 'Next slots'],
  ['sources', 'does not match this body'],
  ['no source', 'POST /in/nowhere'],
  ['alerts', 'too-many'],
  ['audit', 'added endpoint'],
  ['keys', 'There is no key.'],
]

it.each(PAGES)('%s opens without an error, in light and dark', async (name, text) => {
  for (const scheme of ['light', 'dark'] as const) {
    const page = await site.open(paths[name] ?? '', { scheme })
    await page.getByText(text).first().waitFor()
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    expect(await page.title()).toMatch(/ · Sluice$/)
    expect(await page.locator('[style]').count()).toBe(0)
    expect(await page.locator('script:not([src])').count()).toBe(0)
    expect(await axe(page)).toEqual([])
    await page.close()
  }
  expect(site.errors).toEqual([])
})

it.each(PAGES)('%s fits 400 px, without sideways scrolling', async (name, text) => {
  const page = await site.open(paths[name] ?? '', { width: 400 })
  await page.getByText(text).first().waitFor()
  expect(await overflow(page)).toBeLessThanOrEqual(0)
  expect(await axe(page)).toEqual([])
  expect(site.errors).toEqual([])
})
