// The webhooks of the demo's task service, signed by Standard Webhooks.
import { createHmac } from 'node:crypto'
import type { Millis } from 'sluice'

/** The secrets of the demo are public: they admit only what the demo itself could invent. */
export const SECRET = 'whsec_c2x1aWNlLWRlbW8tc2VjcmV0LW5vdC1mb3ItdXNl'

export const BY_HAND_TOKEN = 'demo'
/** 32 bytes. A fixed key, so that a kept store can be opened again. */
export const ENCRYPTION_KEY: string = Buffer.from('sluice-demo-key-not-for-use-else').toString('base64')

export interface Webhook {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export function taskEdited(user: string, id: string, now: Millis): Webhook {
  const body = JSON.stringify({ type: 'task.edited', timestamp: new Date(now).toISOString(), data: { assignee: user } })
  const time = String(Math.floor(now / 1_000))
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${mac}`,
  }
  return { body, headers }
}
