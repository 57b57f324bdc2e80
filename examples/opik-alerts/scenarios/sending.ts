// What the receivers get, and what happens when they fail.
import type { Scenario } from '../../kit/example.ts'
import type { SlackMessage } from '../stand-in/receivers.ts'
import type { World } from '../world.ts'
import { REAL_TIME, Workspace, type AlertInApi } from './workspace.ts'

const TOKEN = 'a secret of the customer'
const UUID_7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

/** The real product's body: the top level in snake_case, the payload in camelCase. */
const generalBody: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const headers = { 'x-team': 'quality' }
  const { id, path, signing_secret } = await workspace.alert({ name: 'Errors', headers, secret_token: TOKEN })
  const ids = await workspace.happen('trace:errors', 2)
  await workspace.idle()
  const [received] = stage.world.receivers.accepted('general', path)
  const body = JSON.parse(received?.body ?? '{}') as Readonly<Record<string, unknown>>
  const { id: notification, created_at, ...rest } = body
  const wanted = {
    event_type: 'trace:errors',
    alert_id: id,
    alert_name: 'Errors',
    workspace_id: workspace.name,
    workspace_name: workspace.name,
    payload: {
      alertId: id,
      alertName: 'Errors',
      eventType: 'trace:errors',
      eventIds: ids,
      metadata: ids.map((trace) => ({ trace })),
      userNames: ['ada', 'ada'],
      eventCount: 2,
      aggregationType: 'consolidated',
      message: "Alert 'Errors': 2 trace:errors events aggregated",
    },
    max_retries: 3,
  }
  workspace.check(
    `the body is that of the product: ${JSON.stringify(rest)}`,
    JSON.stringify(rest) === JSON.stringify(wanted),
  )
  workspace.check(
    `with a UUID of version 7 and a time: ${String(notification)} ${String(created_at)}`,
    UUID_7.test(String(notification)),
  )
  const sent = ['user-agent', 'content-type', 'authorization', 'x-team'].map((name) => received?.headers.get(name))
  workspace.check(
    `and the headers: ${sent.join(', ')}`,
    sent.join() === `Opik-Webhook/1.0,application/json,Bearer ${TOKEN},quality`,
  )
  workspace.check(
    'it is signed as well',
    received?.headers.has('webhook-signature') === true && signing_secret !== undefined,
  )
  const shown = JSON.stringify(await workspace.show(id))
  workspace.check('the API shows no secret', !shown.includes(TOKEN) && shown.includes('authorization'))
  await workspace.call('PATCH', `/alerts/${id}`, { secret_token: 'another', headers: { 'x-team': null } })
  await workspace.happen()
  await workspace.idle()
  const [, next] = stage.world.receivers.accepted('general', path)
  workspace.check(
    'a new token counts at once',
    next?.headers.get('authorization') === 'Bearer another' && !next.headers.has('x-team'),
  )
}

const slackCard: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { id, path } = await workspace.alert({ alert_type: 'slack', name: 'Errors & <more>' })
  await workspace.happen('trace:errors', 1_000)
  await workspace.idle()
  const cards = stage.world.receivers.accepted('slack', path)
  workspace.check(`1,000 errors are ${cards.length} message in Slack`, cards.length === 1)
  const { blocks } = JSON.parse(cards[0]?.body ?? '{"blocks":[]}') as SlackMessage
  const text = blocks.map((block) => block.text?.text).join('\n')
  workspace.check(
    `it says: ${text.split('\n').slice(0, 2).join(' / ')}`,
    text.startsWith('*Errors &amp; &lt;more&gt;*\n*1,000* new Trace Errors events') && text.includes('and 990 more'),
  )
  await workspace.call('PATCH', `/alerts/${id}`, { debouncing: REAL_TIME })
  await workspace.happen('trace:errors', 2)
  await workspace.idle()
  const { length } = stage.world.receivers.accepted('slack', path)
  workspace.check(`without debouncing, two errors are ${length - 1} messages`, length === 3)
}

const pagerDutyAlert: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const secret_token = 'R01234567890123456789012345678AB'
  const { id, path } = await workspace.alert({ alert_type: 'pagerduty', secret_token })
  const ids = await workspace.happen('trace:errors', 3)
  await workspace.idle()
  const [alert] = stage.world.receivers.accepted('pagerduty', path)
  const body = JSON.parse(alert?.body ?? '{}') as {
    routing_key?: string
    payload?: {
      severity: string
      summary: string
      custom_details: { events: { data: { payload: { eventIds: string[] } } }[] }
    }
  }
  const { summary, severity, custom_details } = body.payload ?? {}
  workspace.check(
    `PagerDuty gets an ${severity}: ${summary}`,
    body.routing_key === secret_token && severity === 'error',
  )
  const eventIds = custom_details?.events[0]?.data.payload.eventIds.join()
  workspace.check('with all event ids in its details', eventIds === ids.join())
  const other = 'R11111111111111111111111111111AB'
  await workspace.call('PATCH', `/alerts/${id}`, { secret_token: other })
  await workspace.happen()
  await workspace.idle()
  const next = stage.world.receivers.accepted('pagerduty', path)[1]
  workspace.check('a new integration key counts at once', next?.body.includes(other) === true)
}

const testConnection: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { receivers } = stage.world
  const { id, path } = await workspace.alert({ enabled: false, event_types: ['prompt:created'] })
  const { json } = await workspace.call('POST', `/alerts/${id}/test`)
  const [sample] = workspace.got(path)
  workspace.check(`the test says ${JSON.stringify(json)}`, json['delivered'] === true && json['status'] === 204)
  workspace.check(
    `the receiver got a sample of its first type: ${sample?.payload.message}`,
    sample?.event_type === 'prompt:created' && sample.payload.eventIds[0] === '0198ec7e-e844-7537-aaaa-fc5db24fb547',
  )
  receivers.failing.set(path, 403)
  const failed = await workspace.call('POST', `/alerts/${id}/test`)
  workspace.check(
    `and if it fails: ${JSON.stringify(failed.json)}`,
    failed.json['delivered'] === false && failed.json['status'] === 403,
  )
  const slack = await workspace.alert({ alert_type: 'slack' })
  const card = await workspace.call('POST', `/alerts/${slack.id}/test`)
  workspace.check('a sample for Slack is a card', card.json['delivered'] === true)
}

/** 500 ms, 1 s and 2 s, whatever the status. */
const retries: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { receivers } = stage.world
  const { path } = await workspace.alert({ debouncing: REAL_TIME })
  receivers.failing.set(path, 404)
  const attempts = () => receivers.received.filter((one) => one.path === path)
  const [first = ''] = await workspace.happen()
  await stage.until('three attempts failed', () => attempts().length === 3, 20_000)
  receivers.failing.delete(path)
  await workspace.idle()
  const times = attempts().map(({ at }) => at - workspace.published)
  const isRight = stage.isVirtual ? times.join() === '0,500,1500,3500' : times.length === 4 && (times[3] ?? 0) >= 3_480
  workspace.check(`attempts after ${times.map(Math.round).join(', ')} ms`, isRight)
  workspace.check('with the same body', new Set(attempts().map(({ body }) => body)).size === 1)
  workspace.checkIds('the fourth succeeded', path, [[first]])
}

const deadReceiver: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { receivers } = stage.world
  const dead = await workspace.alert({ name: 'Nobody listens' })
  const healthy: AlertInApi[] = []
  while (healthy.length < HEALTHY)
    healthy.push(...(await Promise.all(Array.from({ length: 10 }, () => workspace.alert()))))
  receivers.failing.set(dead.path, 500)
  const began = stage.clock.monotonic()
  const ids = await workspace.happen()
  const arrived = () =>
    receivers.received.filter(({ path, status }) => status < 300 && healthy.some((one) => one.path === path))
  await stage.until('every healthy receiver has its notification', () => arrived().length === HEALTHY, 900_000)
  const slowest = Math.max(...arrived().map(({ at }) => at)) - began
  workspace.check(
    `${HEALTHY} healthy receivers had theirs after ${Math.round(slowest)} ms`,
    stage.isVirtual ? slowest === 60_000 : slowest < workspace.ms(60) + 10_000,
  )
  await workspace.idle()
  const posts = receivers.received.filter(({ path }) => path === dead.path).length
  workspace.check(`the dead one got ${posts} POSTs`, posts === 4)

  const { health } = await workspace.show(dead.id)
  workspace.check(`the alert says so: ${health.status}, ${health.failedBatches} failed`, health.failedBatches === 1)
  const { json } = await workspace.call('GET', `/alerts/${dead.id}/deliveries`)
  workspace.check('and lists each attempt', JSON.stringify(json).split('"status":500').length - 1 === 4)
  const raised = async (): Promise<boolean> =>
    (await stage.app.admin.alerts.list()).some(({ name, state }) => name === 'not-delivered' && state === 'raised')
  await stage.until('the operators are alerted', raised)
  const { items } = await stage.app.admin.deadLetters.list({ flow: 'send' })
  workspace.check(`a dead letter keeps the notification: ${items[0]?.reason}`, items.length === 1)

  stage.tell('receiver', 'is repaired, and the dead letter retried')
  receivers.failing.delete(dead.path)
  await stage.app.admin.deadLetters.retry({ flow: 'send' })
  await workspace.idle()
  workspace.checkIds('nothing was lost', dead.path, [ids])
}

const HEALTHY = 500

const measured: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const [good, bad] = [await workspace.alert(), await workspace.alert()]
  stage.world.receivers.failing.set(bad.path, 500)
  await workspace.happen('trace:errors', 3)
  await workspace.idle()
  const text = await stage.app.admin.metrics()
  const value = (pattern: string): number =>
    Number(new RegExp(`^${pattern} ([\\d.]+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
  const metrics = {
    'events aggregated': value('sluice_counts_total\\{flow="collect",name="events-aggregated"\\}'),
    notifications: value('sluice_counts_total\\{flow="collect",name="notifications"\\}'),
    'from the end of the window to its run': value('sluice_lateness_seconds_count\\{flow="collect"\\}'),
    'from the notification to its delivery': value('sluice_arrival_to_done_seconds_count\\{flow="send"\\}'),
    delivered: value('sluice_deliveries_total\\{flow="send",outcome="delivered"\\}'),
    'failed attempts': value('sluice_deliveries_total\\{flow="send",outcome="failed"\\}'),
    'failed publications': value('sluice_dead_letters_total\\{flow="send"\\}'),
  }
  const shown = Object.entries(metrics).map(([name, count]) => `${name} ${count}`)
  const all = Object.values(metrics)
  const wanted = [6, 2, 2, 1, 1, 3, 1]
  const isRight = stage.isVirtual ? all.join() === wanted.join() : all.every((count, n) => count >= (wanted[n] ?? 0))
  workspace.check(`the metrics of the design: ${shown.join(', ')}`, isRight)
  workspace.check('one was delivered', workspace.got(good.path).length === 1)
}

const refused: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const alert = await workspace.alert()
  const asked = {
    workspace: 'w',
    name: 'n',
    alert_type: 'general',
    url: 'https://example.com',
    event_types: ['trace:errors'],
  }
  const faulty: readonly [object, string][] = [
    [{ ...asked, event_types: ['trace:error'] }, 'event_types.0: '],
    [{ ...asked, url: 'no address' }, 'url: '],
    [{ ...asked, url: 'https://169.254.169.254/latest' }, 'url is not allowed'],
    [{ ...asked, alert_type: 'pagerduty' }, 'secret_token must be the integration key'],
    [{ ...asked, alert_type: 'slack', secret_token: 'x' }, 'secret_token must be omitted for Slack'],
    [{ ...asked, secret_token: 'x', headers: { Authorization: 'y' } }, 'headers must not have authorization'],
    [{ ...asked, debouncing: 'sometimes' }, 'debouncing: must be high-frequency, low-frequency, real-time'],
    [{ ...asked, window: 5 }, 'window'],
  ]
  for (const [body, says] of faulty) {
    const { status, json } = await workspace.call('POST', '/alerts', body)
    workspace.check(`${status}: ${String(json['detail'])}`, status === 400 && String(json['detail']).includes(says))
  }
  const change = await workspace.call('PATCH', `/alerts/${alert.id}`, { workspace: 'other' })
  workspace.check(`${change.status}: ${String(change.json['detail'])}`, change.status === 400)
  const { status } = await stage.send(`/alerts/${alert.id}`)
  workspace.check(`without an API key: ${status}`, status === 401)
  const missing = await workspace.call('PATCH', '/alerts/unknown', { name: 'x' })
  workspace.check(`an unknown alert: ${missing.status}`, missing.status === 404)
}

export const SENDING: Readonly<Record<string, Scenario<World>>> = {
  'The body and the headers of a general webhook': generalBody,
  'A card in Slack': slackCard,
  'An alert in PagerDuty': pagerDutyAlert,
  'Test connection': testConnection,
  'Retries: 500 ms, 1 s and 2 s': retries,
  'A dead receiver beside 500 healthy ones': deadReceiver,
  'The metrics of the design': measured,
  'Faulty alerts are rejected': refused,
}
