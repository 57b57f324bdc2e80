// Takes screenshots of the dashboard, to be looked at: `node test/dashboard/shots.ts <folder> [page…]`.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openBrowser } from '../browser.ts'
import { openScene } from './scene.ts'

const [folder = '/tmp/shots', ...wanted] = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
const isLive = process.env['LIVE'] === '1'
const scene = await openScene({ pace: isLive ? 'live' : 'still' })
if (isLive) scene.traffic(4)
const browser = await openBrowser()
try {
  if (isLive) await new Promise((resolve) => setTimeout(resolve, Number(process.env['WAIT'] ?? 25) * 1_000))
  for (const index of isLive ? [0, 1, 2, 3] : []) {
    const event = { type: 'page.updated', source: 'notion', subject: 'Hiring plan', data: { key: 'ada', index } }
    await scene.app.publish(event)
    await new Promise((resolve) => setTimeout(resolve, 1_200))
  }
  const lanes = (await scene.app.admin.lanes.search({ flow: 'rank-user' })).items
  const events = (await scene.app.admin.events.list({ type: 'page.updated' })).items
  const orders = (await scene.app.admin.events.list({ type: 'order.created' })).items
  const runs = (await scene.app.admin.runs.list({ flow: 'invoices' })).items
  for (const path of ['in/stripe', 'in/stripe', 'in/nowhere']) {
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': `${Math.floor(Date.now() / 1_000)}`,
      'webhook-signature': 'v1,AAAA',
    }
    await fetch(new URL(`/${path}`, scene.url), {
      method: 'POST',
      headers,
      body: '{"type":"invoice.paid","livemode":false}',
    })
  }
  const pages: Record<string, string> = {
    overview: '',
    lanes: 'lanes',
    lane: `lanes/${lanes.find(({ key }) => key === 'ada')?.id ?? lanes[0]?.id ?? ''}`,
    events: 'events',
    event: `events/${orders[0]?.id ?? events[0]?.id ?? ''}`,
    runs: 'runs',
    run: `runs/${runs[0]?.id ?? ''}`,
    endpoints: 'endpoints',
    'endpoint-new': 'endpoints?new=1',
    endpoint: `endpoints/${scene.broken}`,
    'endpoint-up': `endpoints/${scene.working}`,
    filter: `endpoints/${scene.working}?edit=filter`,
    transform: `endpoints/${scene.working}?edit=transform`,
    replays: `replays/${(await scene.app.admin.replays.start({ type: 'page.updated' }, { rate: 1, per: '30s' })).id}`,
    planner: 'replays/new?type=order.created',
    limits: 'limits/notion-api',
    sources: 'sources/stripe',
    alerts: 'alerts',
    audit: 'audit',
    keys: 'keys',
    'dead-letters': 'dead-letters',
    'dead-letter': `dead-letters?flow=invoices&ask=retry&id=${runs.find(({ kind }) => kind === 'dead')?.id ?? ''}`,
  }
  for (const [name, path] of Object.entries(pages)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    for (const [kind, scheme, width] of [
      ['light', 'light', 1_440],
      ['dark', 'dark', 1_440],
      ['400', 'light', 400],
    ] as const) {
      const page = await browser.context.newPage()
      page.on('console', (message) => message.type() === 'error' && console.log(name, kind, message.text()))
      page.on('pageerror', (error) => console.log(name, kind, error.message))
      await page.setViewportSize({ width, height: width === 400 ? 860 : 900 })
      await page.emulateMedia({ colorScheme: scheme })
      await page.goto(scene.url + path)
      await page.waitForTimeout(2_500)
      if (name === 'lanes' && kind !== '400') await page.keyboard.press('j')
      if (name === 'lanes') await page.waitForTimeout(600)
      await page.screenshot({ path: join(folder, `${name}-${kind}.png`), fullPage: process.env['FULL'] === '1' })
      await page.close()
    }
  }
} finally {
  await browser.close()
  await scene.close()
}
