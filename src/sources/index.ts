// This module exports all sources as `sluice/sources`.
export {
  apiKey,
  basic,
  bearer,
  unverified,
  type ApiKeyOptions,
  type BasicOptions,
  type BearerOptions,
  type UnverifiedOptions,
} from './credentials.ts'
export { cloudEvents, type CloudEventsOptions } from './cloud-events.ts'
export { garmin, type GarminOptions } from './garmin.ts'
export { github, type GithubOptions } from './github.ts'
export { hmac, type HmacOptions } from './hmac.ts'
export type { NameSelector, NamingOptions, NamingInput } from './event-names.ts'
export type { SignedContent } from './signed-content.ts'
export { notion, type NotionOptions } from './notion.ts'
export { notionAction, type NotionActionOptions } from './notion-action.ts'
export { shopify, type ShopifyOptions } from './shopify.ts'
export { slack, type SlackOptions } from './slack.ts'
export { standardWebhooks, type StandardWebhooksOptions } from './standard-webhooks.ts'
export { strava, type StravaOptions } from './strava.ts'
export { stripe, type StripeOptions } from './stripe.ts'
export { twilio, type TwilioOptions } from './twilio.ts'
export { whatsapp, type WhatsappOptions } from './whatsapp.ts'
