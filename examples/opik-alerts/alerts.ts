// `Alerts` is what people do to alerts. An alert is a row of the app's own table and an endpoint of Sluice, which has the URL and the secrets.
import { randomUUID } from 'node:crypto'
import { SluiceError, type Clock, type EndpointUpdate, type EndpointWithHealth, type Page, type Sluice } from 'sluice'
import type { AlertTable } from './alert-table.ts'
import {
  assertOneAuthorization,
  parseAlert,
  parseChange,
  InvalidAlert,
  type Alert,
  type AlertChange,
  type AlertType,
  type NewAlert,
} from './domain/alert.ts'
import { consolidate } from './domain/consolidate.ts'
import { EVENT_TYPES, type EventType } from './domain/event-types.ts'

/** The flow with a lane for each alert and event type. */
export const COLLECT = 'collect'

/** The lane of an alert and an event type. The design calls it `webhook_pending:{alertId}:{eventType}`. */
export function laneOf(alert: string, type: EventType): string {
  return `${alert}:${type}`
}

const FORMS = { general: 'flat', slack: 'slack', pagerduty: 'pagerduty' } as const

export class Alerts {
  readonly #app: Sluice
  readonly #table: AlertTable
  readonly #clock: Clock

  constructor(app: Sluice, table: AlertTable, clock: Clock) {
    this.#app = app
    this.#table = table
    this.#clock = clock
  }

  async create(given: unknown): Promise<object> {
    const { url, headers, secret_token, ...fields } = parseAlert(given)
    const { workspace: tenant, name, alert_type } = fields
    const { id: endpoint, secret } = await this.#app.endpoints.create({
      url,
      name,
      tenant,
      form: FORMS[alert_type],
      headers: { ...headers, ...authorization(alert_type, secret_token) },
      ...(alert_type === 'pagerduty' && secret_token !== null && { secret: secret_token }),
    })
    const alert = { ...fields, id: randomUUID(), endpoint, created_at: this.#clock.now() }
    try {
      await this.#table.add(alert)
    } catch (error) {
      await this.#app.endpoints.delete(endpoint)
      throw error
    }
    // Opik signs nothing. Whoever wants to can verify our signatures with this.
    return { ...(await this.#describe(alert)), ...(alert_type === 'general' && { signing_secret: secret }) }
  }

  async list(workspace: string): Promise<readonly object[]> {
    const endpoints = new Map((await this.#app.endpoints.list()).map((one) => [one.id, one]))
    const lanes = Map.groupBy(await this.#openLanes(workspace), ({ key }) => key.slice(0, key.indexOf(':')))
    const alerts = await this.#table.ofWorkspace(workspace)
    return alerts.map((alert) => describeAlert(alert, endpoints.get(alert.endpoint), lanes.get(alert.id) ?? []))
  }

  async show(id: string): Promise<object | undefined> {
    const alert = await this.#table.find(id)
    return alert && this.#describe(alert)
  }

  /** Debouncing that is switched off ends the open windows at once. */
  async change(id: string, given: unknown): Promise<object | undefined> {
    const { url, headers, secret_token, ...fields } = parseChange(given)
    const before = await this.#table.find(id)
    if (before === undefined) return undefined
    await this.#changeEndpoint(before, { url, name: fields.name, headers, secret_token })
    const after = await this.#table.change(id, (alert) => ({ ...alert, ...fields }))
    if (after === undefined) return undefined
    if (!after.debouncing.enabled) await this.#endWindows(id)
    return this.#describe(after)
  }

  /** Returns the number of events and notifications that were dropped. A call that broke off can be repeated. */
  async remove(id: string): Promise<object | undefined> {
    const alert = await this.#table.change(id, (found) => ({ ...found, enabled: false }))
    if (alert === undefined) return undefined
    const notifications = await this.#removeEndpoint(alert.endpoint)
    const events = (await this.#windows(id)).reduce((sum, { waiting }) => sum + waiting, 0)
    await this.#table.remove(id)
    // Each window ends as a run that finds no alert and drops its events, so that the metrics and the list of runs show them.
    await this.#endWindows(id)
    return { dropped: { events, notifications } }
  }

  /** Sends a sample at once. */
  async test(id: string): Promise<object | undefined> {
    const alert = await this.#table.find(id)
    if (alert === undefined) return undefined
    const [event_type] = alert.event_types
    if (event_type === undefined) return undefined
    const sample = { alert: id, event_type, event_id: SAMPLE_ID, user_name: 'demo', debouncing: alert.debouncing }
    const data = consolidate(alert, [sample], { seed: randomUUID(), at: this.#clock.now() })
    return this.#app.endpoints.test(alert.endpoint, { data })
  }

  async deliveries(id: string): Promise<readonly object[] | undefined> {
    const alert = await this.#table.find(id)
    return alert && this.#app.endpoints.deliveries(alert.endpoint)
  }

  async #changeEndpoint({ endpoint, alert_type }: Alert, asked: EndpointChange): Promise<void> {
    const { url, name, headers, secret_token: token } = asked
    if (token !== undefined && alert_type === 'slack')
      throw new InvalidAlert('secret_token must be omitted for Slack, because the URL is the secret.')
    if (token === null && alert_type === 'pagerduty')
      throw new InvalidAlert('secret_token must be the integration key of PagerDuty; got none.')
    assertOneAuthorization(headers, token)
    const added = token === undefined ? {} : token === null ? { authorization: null } : authorization(alert_type, token)
    const update: EndpointUpdate = {
      ...(url !== undefined && { url }),
      ...(name !== undefined && { name }),
      ...((headers !== undefined || Object.keys(added).length > 0) && { headers: { ...headers, ...added } }),
    }
    if (Object.keys(update).length > 0) await this.#app.endpoints.update(endpoint, update)
    if (typeof token === 'string' && alert_type === 'pagerduty')
      await this.#app.endpoints.rotateSecret(endpoint, { secret: token, force: true })
  }

  async #removeEndpoint(endpoint: string): Promise<number> {
    try {
      return (await this.#app.endpoints.delete(endpoint)).dropped
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'NOT_FOUND') return 0
      throw error
    }
  }

  async #windows(id: string): Promise<readonly Window[]> {
    const lanes = await Promise.all(EVENT_TYPES.map((type) => this.#app.admin.lanes.get(COLLECT, laneOf(id, type))))
    return lanes.filter((lane) => lane !== undefined)
  }

  async #endWindows(id: string): Promise<void> {
    for (const { key } of await this.#windows(id)) await this.#app.admin.lanes.runNow(COLLECT, key)
  }

  async #openLanes(tenant: string): Promise<readonly Window[]> {
    const found: Window[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Page<Window> = await this.#app.admin.lanes.list({ flow: COLLECT, tenant }, cursor, PAGE)
      found.push(...page.items)
      cursor = page.next
    }
    return found
  }

  async #describe(alert: Alert): Promise<object> {
    return describeAlert(alert, await this.#app.endpoints.get(alert.endpoint), await this.#windows(alert.id))
  }
}

const PAGE = 1_000

/** The lane of an alert and event type. */
interface Window {
  readonly key: string
  readonly waiting: number
  readonly window: number
}

/** Without secrets. */
function describeAlert(
  { endpoint: _endpoint, ...alert }: Alert,
  { url, headers = [], health, lastSuccessfulDeliveryAt }: Partial<EndpointWithHealth> = {},
  lanes: readonly Window[],
): object {
  const windows = lanes
    .filter(({ waiting }) => waiting > 0)
    .map(({ key, waiting, window }) => ({
      event_type: key.slice(alert.id.length + 1),
      events: waiting,
      ends_at: window,
    }))
  return { ...alert, url, headers, health, last_successful_delivery_at: lastSuccessfulDeliveryAt ?? null, windows }
}

/** The sample of Opik. */
const SAMPLE_ID = '0198ec7e-e844-7537-aaaa-fc5db24fb547'

type EndpointChange = {
  readonly [Field in 'url' | 'name' | 'headers' | 'secret_token']: AlertChange[Field] | undefined
}

/** PagerDuty takes the secret in the body. */
function authorization(type: AlertType, token: NewAlert['secret_token']): Readonly<Record<string, string>> {
  return type === 'pagerduty' || token === null ? {} : { authorization: `Bearer ${token}` }
}
