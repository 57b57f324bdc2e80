// Shopify: HMAC of the body, in base64, by the client secret of the app. Names are in headers of two families, and not signed.
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { isObject, jsonOf } from './json-body.ts'
import { eventNamed, momentOf, nameOf } from './named-by.ts'
import { FORGED, isSigned, refusal, secretsOf, unsigned } from './signature.ts'

export interface ShopifyOptions {
  /** For an hour after it is rotated, both sign: give both. */
  readonly secret: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof ShopifyOptions>(['secret'])
const MAC = { algorithm: 'sha256', encoding: 'base64' } as const
const SIGNATURE = 'hmac-sha256'

export function shopify(options: ShopifyOptions): Source {
  onlyKnown(options, KNOWN, 'shopify: ')
  return {
    scheme: 'shopify',
    secrets: secretsOf('shopify', options.secret),
    dedupeFor: '30d',
    verify: (request, { secrets }) => {
      const given = namesOf(request)(SIGNATURE)
      if (given === undefined) return unsigned(`x-shopify-${SIGNATURE}`)
      return isSigned([given], [request.body], secrets, MAC) ? undefined : FORGED
    },
    events: eventsOf,
    answer: { status: 200 },
  }
}

/** "Events" leave the x- out. Which of the two it is, the signature tells; the other family is not looked at. */
function namesOf({ headers }: ReceivedRequest): (name: string) => string | undefined {
  const family = headers[`shopify-${SIGNATURE}`] === undefined ? 'x-shopify-' : 'shopify-'
  return (name) => nameOf(headers[family + name])
}

function eventsOf(request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const header = namesOf(request)
  const topic = header('topic')
  if (topic === undefined) {
    return refusal('BODY_NOT_UNDERSTOOD', 'There is no topic header.', 'Only Shopify is to call this address.')
  }
  const json = jsonOf(request.body)
  if ('code' in json) return json
  const about = isObject(json.value) ? json.value : {}
  const subject = nameOf(about['admin_graphql_api_id']) ?? header('resource-id') ?? nameOf(about['id'])
  const action = header('action')
  const names = {
    type: action === undefined ? topic : `${topic}/${action}`,
    dedupeId: header('webhook-id'),
    subject,
    tenant: header('shop-domain'),
    time: momentOf(header('triggered-at')),
  }
  return [eventNamed(names, request.body)]
}
