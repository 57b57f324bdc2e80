// The webhooks of the demo's task service: signed as Standard Webhooks, by a secret that is good for nothing else.
import { createHmac } from 'node:crypto'
import type { Millis } from 'sluice'

/** Everybody may know it: it only lets in what the demo itself could make up. */
export const SECRET = 'whsec_c2x1aWNlLWRlbW8tc2VjcmV0LW5vdC1mb3ItdXNl'

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

/** For a user who sends a webhook by hand: the signature is valid for five minutes. */
export function asCommand(url: string, { body, headers }: Webhook): string {
  const given = Object.entries(headers).map(([name, value]) => `  -H '${name}: ${value}' \\`)
  return [`curl -i ${url} \\`, ...given, `  -d '${body}'`].join('\n')
}
