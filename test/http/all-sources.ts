// An app with a source of every kind, and the headers that each of them reads: the target of the fuzz tests.
import type { Sluice } from '../../src/index.ts'
import * as kinds from '../../src/sources/index.ts'
import { SECRET } from '../receive/scene.ts'

/** The name has no space, because some kinds cannot contain one. */
const WORD = SECRET.replaceAll(' ', '-')

const SOURCES = {
  github: kinds.github({ secret: SECRET }),
  slack: kinds.slack({ secret: SECRET }),
  stripe: kinds.stripe({ secret: `whsec_${SECRET}` }),
  standardWebhooks: kinds.standardWebhooks({ secret: `whsec_${btoa(SECRET.padEnd(24))}` }),
  shopify: kinds.shopify({ secret: SECRET }),
  twilio: kinds.twilio({ secret: SECRET }),
  whatsapp: kinds.whatsapp({ secret: SECRET, verifyToken: SECRET }),
  notion: kinds.notion({ secret: SECRET }),
  notionAction: kinds.notionAction({ header: 'x-secret', secret: SECRET }),
  strava: kinds.strava({ verifyToken: SECRET, subscriptionId: '98765432101234567890' }),
  garmin: kinds.garmin({ clientId: WORD }),
  cloudEvents: kinds.cloudEvents({ token: WORD, origins: ['hooks.example.com'] }),
  hmac: kinds.hmac({ secret: SECRET, header: 'x-signature', timestamp: 'x-sent-at', id: 'header:x-id' }),
  basic: kinds.basic({ username: 'hooks', secret: SECRET }),
  bearer: kinds.bearer({ secret: WORD }),
  apiKey: kinds.apiKey({ secret: SECRET }),
  unverified: kinds.unverified({ verify: 'none', id: 'id', subject: 'subject', tenant: 'tenant', time: 'time' }),
} satisfies Record<keyof typeof kinds, unknown>

/** The secret that no fuzzed request knows. */
export const PROVEN: readonly string[] = Object.keys(SOURCES).filter((name) => name !== 'unverified')

export function withAll(app: Sluice): Sluice {
  for (const [name, source] of Object.entries(SOURCES)) {
    app.source(name, source, name === 'unverified' ? { maxBody: 10_000 } : {})
  }
  return app.source('packed', SOURCES.github, { compressed: true, maxBody: 10_000 })
}

export const HEADER_NAMES = [
  'content-type',
  'content-encoding',
  'content-length',
  'x-hub-signature-256',
  'x-github-event',
  'x-github-delivery',
  'x-slack-signature',
  'x-slack-request-timestamp',
  'stripe-signature',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'svix-signature',
  'x-shopify-hmac-sha256',
  'shopify-hmac-sha256',
  'x-shopify-topic',
  'x-twilio-signature',
  'i-twilio-idempotency-token',
  'x-notion-signature',
  'x-secret',
  'x-strava-signature',
  'garmin-client-id',
  'ce-id',
  'ce-source',
  'ce-type',
  'ce-specversion',
  'ce-time',
  'webhook-request-origin',
  'x-signature',
  'x-sent-at',
  'x-id',
  'x-api-key',
  'authorization',
  '__proto__',
  'constructor',
] as const
