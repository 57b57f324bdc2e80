// The webhooks that Notion sends of its pages: signed ones of the integration, which have only ids, and those of the
// "Send webhook" action, which bring the page.
import { createHmac, randomUUID } from 'node:crypto'
import { DATA_SOURCE, type Change } from './notion.ts'
import { pageObject, type StoredPage } from './page.ts'

export const VERIFICATION_TOKEN = 'secret_stand_in_and_good_for_nothing_else'
export const ACTION_SECRET = 'stand-in and good for nothing else'

export interface Webhook {
  /** Where it goes to, below the app's own address. */
  readonly path: '/in/notion' | '/in/action'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function integrationWebhook({ page, by, at, properties }: Change): Webhook {
  const body = JSON.stringify({
    id: randomUUID(),
    timestamp: new Date(at).toISOString(),
    workspace_id: '13950b26-c203-4f3b-b97d-93ec06319565',
    workspace_name: 'Stand-in',
    subscription_id: '29d75c0d-5546-4414-8459-7b7a92f1fc4b',
    integration_id: '0ef2e755-4912-8096-91c1-00376a88a5ca',
    authors: [{ id: by.id, type: 'bot' in by ? 'bot' : 'person' }],
    attempt_number: 1,
    api_version: '2025-09-03',
    type: 'page.properties_updated',
    entity: { id: page.id, type: 'page' },
    data: {
      parent: { id: DATA_SOURCE, type: 'database', data_source_id: DATA_SOURCE },
      updated_properties: properties,
    },
  })
  return signed(body)
}

/** Any body, as Notion would sign it. */
export function signed(body: string): Webhook {
  const mac = createHmac('sha256', VERIFICATION_TOKEN).update(body).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-notion-signature': `sha256=${mac}` }
  return { path: '/in/notion', headers, body }
}

export function actionWebhook(page: StoredPage): Webhook {
  const body = JSON.stringify({
    source: { type: 'automation', automation_id: randomUUID(), event_id: randomUUID(), attempt: 1 },
    data: pageObject(page, DATA_SOURCE),
  })
  return { path: '/in/action', headers: { 'content-type': 'application/json', 'x-secret': ACTION_SECRET }, body }
}

export type Deliver = (webhook: Webhook) => Promise<number>

/** To an app that listens somewhere. */
export function deliverTo(url: string): Deliver {
  return async ({ path, headers, body }) => {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body })
    await response.body?.cancel()
    return response.status
  }
}
