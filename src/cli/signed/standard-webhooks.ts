// Signs id, time and body by Standard Webhooks: with HMAC, or with the sender's private key if that is given.
import { createPrivateKey, sign } from 'node:crypto'
import { requestBody, JSON_TYPE, computeMac, toSeconds, type Signer } from './signed.ts'

const KEY_BYTES = 32

export const standardWebhooks: Signer = (asked) => {
  const [id, seconds] = [`msg_${asked.id}`, toSeconds(asked.now)]
  const timestamp = new Date(asked.now).toISOString()
  const body = requestBody(asked, { type: asked.type ?? 'test', timestamp, data: { id: asked.id } })
  const [, kind, text = ''] = /^(whsec_|whpk_|whsk_)?(.*)$/s.exec(asked.secret.trim()) ?? []
  if (kind === 'whpk_')
    return 'The source has only the public key of its sender: give the private one, --secret=whsk_….'
  const parts = [Buffer.from(`${id}.${seconds}.`), body]
  const key = Buffer.from(text, 'base64')
  const signature =
    kind === 'whsk_'
      ? `v1a,${sign(null, Buffer.concat(parts), privateKey(key)).toString('base64')}`
      : computeMac(key, parts, { algorithm: 'sha256', encoding: 'base64', prefix: 'v1,' })
  const headers = { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signature }
  return { url: asked.url, headers: { ...JSON_TYPE, ...headers }, body }
}

/** The private key, followed by the public key. */
function privateKey(bytes: Buffer): ReturnType<typeof createPrivateKey> {
  const [d, x] = [bytes.subarray(0, KEY_BYTES), bytes.subarray(KEY_BYTES)].map((half) => half.toString('base64url'))
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d: d ?? '', x: x ?? '' }, format: 'jwk' })
}
