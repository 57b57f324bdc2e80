// The signer of each scheme, by the scheme's name.
import { cloudEvents } from './cloud-events.ts'
import { garmin } from './garmin.ts'
import { github } from './github.ts'
import { notion, notionAction } from './notion.ts'
import { signGeneric } from './proof.ts'
import { shopify } from './shopify.ts'
import type { Signer } from './signed.ts'
import { slack } from './slack.ts'
import { standardWebhooks } from './standard-webhooks.ts'
import { strava } from './strava.ts'
import { stripe } from './stripe.ts'
import { twilio } from './twilio.ts'
import { whatsapp } from './whatsapp.ts'

export const SIGNERS: ReadonlyMap<string, Signer> = new Map([
  ['github', github],
  ['stripe', stripe],
  ['slack', slack],
  ['shopify', shopify],
  ['twilio', twilio],
  ['whatsapp', whatsapp],
  ['notion', notion],
  ['notion-action', notionAction],
  ['strava', strava],
  ['garmin', garmin],
  ['standardWebhooks', standardWebhooks],
  ['cloud-events', cloudEvents],
  ['hmac', signGeneric],
  ['basic', signGeneric],
  ['bearer', signGeneric],
  ['apiKey', signGeneric],
  ['none', signGeneric],
])
