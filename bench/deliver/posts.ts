// The POSTs of the deliver bench, the same for all sides: one event of 500 bytes in a signed Standard Webhooks envelope.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

export const KEY_BYTES: Buffer = Buffer.alloc(32, 'key of the bench')
/** The secret as a key object. From plain bytes, Node makes a key for each signature, which takes several times as long as signing. */
const KEY: KeyObject = createSecretKey(KEY_BYTES)
export const SECRET: string = `whsec_${KEY_BYTES.toString('base64')}`
export const TYPE = 'version.new'
const TEXT = 'x'.repeat(470)

export interface Post {
  readonly id: string
  readonly data: { readonly n: number; readonly text: string }
}

export function postOf(n: number): Post {
  return { id: `post-${n}`, data: { n, text: TEXT } }
}

/** Signs as somebody would by hand who knows about key objects. */
export function signedBy(body: string, id: string): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', KEY).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}

export function bodyOf({ id, data }: Post, at: number): string {
  return JSON.stringify({
    type: TYPE,
    timestamp: new Date(at).toISOString(),
    data: { events: [{ id, type: TYPE, data }] },
  })
}
