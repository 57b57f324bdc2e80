// What operators do all day: an endpoint with its secret, a replay to its end, a limit, a source, a key.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openSite, type Site } from './site.ts'

let site: Site

beforeAll(async () => {
  site = await openSite()
})

afterEach(() => site.reset())
afterAll(() => site.close())

it('creates an endpoint, shows its secret once, rotates it, sends a test, and deletes the endpoint', async () => {
  const { app } = site.scene
  const [known] = await app.endpoints.list()
  const page = await site.open('endpoints')
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  const form = page.getByRole('dialog', { name: 'Add an endpoint' })
  await form.getByLabel('URL').fill(new URL('/initech', known?.url).href)
  await form.getByLabel('Name').fill('Initech Mirror')
  await form.getByLabel('Event types').fill('order.*\ninvoice.paid')
  await form.getByRole('button', { name: 'Add the endpoint' }).click()
  const shown = page.getByRole('dialog', { name: 'The secret of the new endpoint' })
  const secret = await shown.getByLabel('the secret', { exact: true }).innerText()
  expect(secret).toMatch(/^whsec_/)
  await shown.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { level: 1, name: 'Initech Mirror' }).waitFor()
  const created = (await app.endpoints.list()).find(({ name }) => name === 'Initech Mirror')
  expect(created).toMatchObject({ eventFilter: ['order.*', 'invoice.paid'] })

  await page.getByRole('button', { name: 'Rotate…' }).click()
  await page.getByRole('button', { name: 'Rotate the secret' }).click()
  const rotated = await page.getByLabel('the secret', { exact: true }).innerText()
  expect(rotated).toMatch(/^whsec_/)
  expect(rotated).not.toBe(secret)
  await page.getByRole('button', { name: 'Done' }).click()
  expect(await page.getByText(rotated).count()).toBe(0)

  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('with HTTP 200').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: 'Delete the endpoint' }).click()
  await page.getByRole('heading', { level: 1, name: 'Endpoints' }).waitFor()
  expect((await app.endpoints.list()).map(({ name }) => name)).not.toContain('Initech Mirror')
  expect(site.errors).toEqual([])
})

it('says what is wrong with the URL of an endpoint', async () => {
  const page = await site.open('endpoints?new=1')
  await page.getByLabel('URL').last().fill('https://user:pass@example.com/')
  await page.getByRole('button', { name: 'Add the endpoint' }).click()
  await page.getByText('ENDPOINT_INVALID').waitFor()
})

it('shows what the broken endpoint answered, attempt by attempt', async () => {
  const page = await site.open(`endpoints/${site.scene.broken}`)
  await page.getByRole('link', { name: 'Retrying' }).click()
  await page.waitForURL(/batch=/)
  await page.getByText('5 attempts of').waitFor()
  await page.getByText('{"error":"maintenance"}').waitFor()
  expect(site.errors).toEqual([])
})

it('tries a transformation live, names the line of a fault, and saves a version', async () => {
  const { app, working } = site.scene
  const page = await site.open(`endpoints/${working}?edit=transform`)
  const code = page.getByLabel('Code of the transformation')
  await code.fill("export default (events) =>\n  events.map((event) => ({ ...event, data: { note: 'changed' } }))\n")
  await page.getByLabel('the body', { exact: true }).getByText('"note": "changed"').waitFor()
  await code.fill('export default () => {\n\n  throw new Error("broken")\n}')
  await page.getByText('It failed at line 3.').waitFor()
  await code.fill('export default (events) => events')
  await page.getByText('It works.').waitFor()
  await page.getByRole('button', { name: 'Save as a new version' }).click()
  await page.getByText('version 1 is used').waitFor()
  expect((await app.endpoints.transforms.get(working)).current).toMatchObject({
    version: 1,
    code: 'export default (events) => events',
  })
  expect(site.errors).toEqual([])
})

it('saves a filter, and names the fault of a wrong one', async () => {
  const { app, working } = site.scene
  const page = await site.open(`endpoints/${working}?edit=filter`)
  await page.getByLabel('Event types').fill('order.*')
  await page.getByLabel('Content filter').fill('{ "total": 1 }')
  await page.getByRole('button', { name: 'Save the filter' }).click()
  await page.getByText('ENDPOINT_INVALID').waitFor()
  await page.getByLabel('Content filter').fill('{ "data.total": { "gte": 100 } }')
  await page.getByRole('button', { name: 'Save the filter' }).click()
  await page.getByRole('heading', { name: 'Batches' }).waitFor()
  expect(await app.endpoints.get(working)).toMatchObject({
    eventFilter: ['order.*'],
    where: { 'data.total': { gte: 100 } },
  })
})

it('plans a replay with the count first, and watches it to its end', async () => {
  const { app } = site.scene
  const page = await site.open('replays/new?type=order.created')
  await page.getByText('order.created').first().waitFor()
  await page.getByRole('checkbox', { name: /chosen flows: orders/ }).check()
  await page.getByLabel('Events a second').fill('50')
  await page.getByLabel('Events a second').blur()
  await page.waitForURL(/rate=50/)
  await page.getByText('At 50 a second it is done in about').waitFor()
  await page.getByLabel('the same as a command', { exact: true }).getByText('--into=orders').waitFor()
  await page.getByRole('button', { name: 'Replay 7 events' }).click()
  await page.waitForURL(/replays\/(?!new)/)
  await page.getByText('7 done, 0 to go').waitFor()
  await page.getByText('Placed 7 of 7 events again').waitFor()
  const [replay] = await app.admin.replays.list()
  expect(replay).toMatchObject({ state: 'done', found: 7, placed: 7, into: ['orders'] })
  expect(site.errors).toEqual([])
})

it('cancels a replay and lets it go on', async () => {
  const { app } = site.scene
  const { id } = await app.admin.replays.start({ type: 'page.updated' }, { rate: 1, per: '1h', into: ['rank-user'] })
  const page = await site.open(`replays/${id}`)
  await page.getByRole('button', { name: 'Cancel the replay' }).click()
  await page.getByText('Somebody cancelled it after').waitFor()
  expect(await app.admin.replays.show(id)).toMatchObject({ state: 'cancelled' })
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Cancel the replay' }).waitFor()
  expect(await app.admin.replays.show(id)).toMatchObject({ state: 'running' })
})

it('pauses a limit and resumes it', async () => {
  const { app } = site.scene
  const page = await site.open('limits/notion-api')
  await page.getByText('Next slots').waitFor()
  await page.getByRole('button', { name: 'Pause…' }).click()
  await page.getByLabel('Reason').fill('maintenance of the API')
  await page.getByRole('button', { name: 'Pause the limit' }).click()
  await page.getByText('Paused by a person').first().waitFor()
  await page.getByText('By loopback').first().waitFor()
  expect((await app.admin.limits.show('notion-api'))?.pausedUntil).toBeDefined()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('Paused by a person').first().waitFor({ state: 'detached' })
  expect((await app.admin.limits.show('notion-api'))?.pausedUntil).toBeUndefined()
  expect(site.errors).toEqual([])
})

it('dissects a refused request: how far it came, which header was read, and the fix', async () => {
  const { url } = site.scene
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': `${Math.floor(Date.now() / 1_000)}`,
    'webhook-signature': 'v1,AAAA',
  }
  await fetch(new URL('/in/stripe', url), { method: 'POST', headers, body: '<b>{"livemode":false}' })
  const page = await site.open('sources')
  await page.getByText('1 request was refused').waitFor()
  const gates = page.locator('.gate-words')
  await gates.locator('.passed', { hasText: 'Header' }).waitFor()
  await gates.locator('.failed', { hasText: 'Signature' }).waitFor()
  await gates.locator('.skipped', { hasText: 'Stored' }).waitFor()
  await page.locator('.autopsy').getByText('webhook-signature').waitFor()
  await page.locator('.autopsy').getByText('Compare the secret with that of the').waitFor()
  await page.getByLabel('the request', { exact: true }).getByText('<b>{"livemode":false}').waitFor()
  expect(site.errors).toEqual([])
})

it('signs a test request that the source accepts', async () => {
  const page = await site.open('sources/notion')
  const answer = page.waitForResponse((response) => response.url().endsWith('/sample'))
  await page.getByRole('button', { name: 'Signed test request', exact: true }).click()
  const curl = await page.getByLabel('the request as curl', { exact: true }).innerText()
  const sample = (await (await answer).json()) as {
    readonly url: string
    readonly headers: Record<string, string>
    readonly body64: string
  }
  expect(curl).toContain(sample.url)
  const body = Buffer.from(sample.body64, 'base64')
  const { status } = await fetch(sample.url, { method: 'POST', headers: sample.headers, body })
  expect(status).toBeLessThan(300)
  expect(site.errors).toEqual([])
})

it('creates the first key without losing its secret or the session, revokes another, and verifies the audit log', async () => {
  const { app } = site.scene
  const page = await site.open('keys')
  const create = async (name: string, role: RegExp): Promise<string> => {
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('Name').fill(name)
    await page.getByLabel(role).check()
    await page.getByRole('button', { name: 'Create the key' }).click()
    const secret = await page.getByLabel('the secret', { exact: true }).innerText()
    // While the secret is shown, the polls of the page find out that the API needs a key now.
    await page.waitForResponse((response) => response.url().includes('/v1/status') && response.ok())
    expect(await page.getByLabel('the secret', { exact: true }).innerText()).toBe(secret)
    await page.getByRole('button', { name: 'Done' }).click()
    expect(await page.getByText(secret).count()).toBe(0)
    return secret
  }
  const first = await create('ada', /^operate/)
  const second = await create('bob', /^read/)
  expect(second).not.toBe(first)
  await page.getByRole('button', { name: 'Revoke the key bob' }).click()
  await page.getByRole('button', { name: 'Revoke the key', exact: true }).click()
  await page.getByText('The key bob was revoked.').waitFor()
  expect(await app.admin.keys.list()).toMatchObject([{ name: 'ada', role: 'operate' }])
  await page.goto(`${site.scene.url}audit`)
  await page.getByRole('row', { name: /ada.*revoked the key bob/ }).waitFor()
  await page.getByRole('button', { name: 'Verify the chain' }).click()
  await page.getByText('The chain is whole.').waitFor()
})
