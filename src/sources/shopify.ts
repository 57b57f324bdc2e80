// `shopify` verifies an HMAC of the body, in base64, with the client secret of the app. The names are in unsigned
// headers of two families.
import { assertKnownOptions } from '../validate/options.ts'
import type { SignRequest, ParseEvents, ReceivedRequest, Source } from '../receive/source.ts'
import { isObject, parseJson } from './json-body.ts'
import { parseTime, toName } from './event-names.ts'
import {
  WRONG_SIGNATURE,
  computeMac,
  hasValidMac,
  missingSignature,
  notUnderstood,
  parseSecrets,
  signJson,
  type Secrets,
} from './signature.ts'

export interface ShopifyOptions {
  /** For an hour after a rotation, Shopify signs with both secrets: pass both. */
  readonly secret: Secrets
}

const MAC = { algorithm: 'sha256', encoding: 'base64' } as const
const SIGNATURE = 'hmac-sha256'

export function shopify(options: ShopifyOptions): Source {
  assertKnownOptions(options, ['secret'], 'shopify: ')
  return {
    scheme: 'shopify',
    secrets: parseSecrets('shopify', options.secret),
    dedupeFor: '30d',
    verify: (request, { secrets }) => {
      const given = createHeaderReader(request)(SIGNATURE)
      if (given === undefined) return missingSignature(`x-shopify-${SIGNATURE}`)
      return hasValidMac([given], [request.body], secrets, MAC) ? undefined : WRONG_SIGNATURE
    },
    events: parseEvents,
    sign,
    answer: { status: 200 },
  }
}

/** Shopify "Events" omit the x-. The signature header decides the family, and headers of the other family are
    ignored. */
function createHeaderReader({ headers }: ReceivedRequest): (name: string) => string | undefined {
  const family = headers[`shopify-${SIGNATURE}`] === undefined ? 'x-shopify-' : 'shopify-'
  return (name) => toName(headers[family + name])
}

const parseEvents: ParseEvents = (request) => {
  const header = createHeaderReader(request)
  const topic = header('topic')
  if (topic === undefined) {
    return notUnderstood('There is no topic header.', 'Make sure that only Shopify calls this URL.')
  }
  const json = parseJson(request.body)
  if ('code' in json) return json
  const about = isObject(json.value) ? json.value : {}
  const subject = toName(about['admin_graphql_api_id']) ?? header('resource-id') ?? toName(about['id'])
  const action = header('action')
  return [
    {
      type: action === undefined ? topic : `${topic}/${action}`,
      dedupeId: header('webhook-id'),
      subject,
      tenant: header('shop-domain'),
      time: parseTime(header('triggered-at')),
      body: request.body,
    },
  ]
}

const sign: SignRequest = (input) => {
  return signJson(input, { id: 1, admin_graphql_api_id: 'gid://shopify/Order/1' }, (body) => ({
    'x-shopify-topic': input.type ?? 'orders/create',
    'x-shopify-webhook-id': input.id,
    'x-shopify-shop-domain': 'test.myshopify.com',
    'x-shopify-triggered-at': new Date(input.now).toISOString(),
    [`x-shopify-${SIGNATURE}`]: computeMac(input.secret, [body], MAC),
  }))
}
