// The requests of the ingest bench: signed webhooks as GitHub sends them, each with its own delivery id, made before the clock runs.
import { createHmac } from 'node:crypto'

export const SECRET = 'of the bench'
export const PATH = '/in/github'
export const EVENT = 'push'
/** The number of lanes, which take turns. */
const LANES = 1_000
const FILLING = 'x'.repeat(600)

export interface Signed {
  readonly body: Buffer
  readonly signature: string
}

/** Bodies repeat from lane to lane; the delivery id makes each request a different event. */
export function signedBodies(): readonly Signed[] {
  return Array.from({ length: LANES }, (_, lane) => {
    const body = Buffer.from(JSON.stringify({ repository: { full_name: `octo/app-${lane}` }, text: FILLING }))
    return { body, signature: `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}` }
  })
}

export function requestOf({ body, signature }: Signed, delivery: string): Buffer {
  const head =
    `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
    `x-github-event: ${EVENT}\r\nx-github-delivery: ${delivery}\r\nx-hub-signature-256: ${signature}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}
