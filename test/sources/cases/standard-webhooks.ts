// Valid messages of Standard Webhooks, with HMAC, with ed25519 and with the header names of Svix, and the result of each fault.
import { createHmac, createPrivateKey, sign } from 'node:crypto'
import type { ReceivedRequest } from '../../../src/receive/source.ts'
import { standardWebhooks } from '../../../src/sources/standard-webhooks.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const BODY = '{"type":"invoice.paid","timestamp":"2026-01-15T11:59:58.5Z","data":{"id":"in_1"}}'
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'

type Sign = (secret: string, content: string) => string

const byMac: Sign = (secret, content) => {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`
}

/** The raw private keys, by the public keys that a source is configured with. */
const PRIVATE: Readonly<Record<string, string>> = {
  whpk_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
  whpk_PUAXw_hDiVqStwqnTRt_vJyYLM8uxJaMwM1V8Sr0Zgw: 'TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs',
}
const PUBLIC = Object.keys(PRIVATE).map((key) => `whpk_${Buffer.from(key.slice(5), 'base64url').toString('base64')}`)

const byKey: Sign = (secret, content) => {
  const x = Buffer.from(secret.slice(5), 'base64').toString('base64url')
  const d = PRIVATE[`whpk_${x}`] ?? ''
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' })
  return `v1a,${sign(null, Buffer.from(content), key).toString('base64')}`
}

function messageOf(family: string, signature: Sign): SourceCase['request'] {
  return (secret, at) => {
    const seconds = Math.floor(at / 1_000)
    return requestOf({
      body: BODY,
      headers: {
        [`${family}-id`]: ID,
        [`${family}-timestamp`]: String(seconds),
        [`${family}-signature`]: signature(secret, `${ID}.${seconds}.${BODY}`),
      },
    })
  }
}

function expectedOf(family: string): SourceCase['expected'] {
  return {
    bodyChanged: 'SIGNATURE_WRONG',
    headerChanged: {
      [`${family}-id`]: 'SIGNATURE_WRONG',
      [`${family}-timestamp`]: 'SIGNATURE_WRONG',
      [`${family}-signature`]: 'SIGNATURE_WRONG',
    },
    headerMissing: {
      [`${family}-id`]: 'SIGNATURE_MISSING',
      [`${family}-timestamp`]: 'TIMESTAMP_MISSING',
      [`${family}-signature`]: 'SIGNATURE_MISSING',
    },
    wrongSecret: 'SIGNATURE_WRONG',
    old: 'TIMESTAMP_OLD',
    future: 'TIMESTAMP_IN_FUTURE',
    replayed: 'duplicate',
    contentType: 'accepted',
  }
}

function isForgedBy(family: string): (request: ReceivedRequest, genuine: ReceivedRequest) => boolean {
  return (request, genuine) =>
    !Buffer.from(request.body).equals(genuine.body) ||
    ['id', 'timestamp'].some((name) => request.headers[`${family}-${name}`] !== genuine.headers[`${family}-${name}`])
}

const MAC = { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', wrongSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx' }

export const cases: readonly SourceCase[] = [
  {
    name: 'standardWebhooks by HMAC',
    build: (secret) => standardWebhooks({ secret }),
    ...MAC,
    request: messageOf('webhook', byMac),
    expected: expectedOf('webhook'),
    isForged: isForgedBy('webhook'),
  },
  {
    name: 'standardWebhooks with the names of Svix',
    build: (secret) => standardWebhooks({ secret }),
    ...MAC,
    request: messageOf('svix', byMac),
    expected: expectedOf('svix'),
    isForged: isForgedBy('svix'),
  },
  {
    name: 'standardWebhooks by ed25519',
    build: (secret) => standardWebhooks({ secret }),
    secret: PUBLIC[0] ?? '',
    wrongSecret: PUBLIC[1] ?? '',
    request: messageOf('webhook', byKey),
    expected: expectedOf('webhook'),
    isForged: isForgedBy('webhook'),
  },
]
