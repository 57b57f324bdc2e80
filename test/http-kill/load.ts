// The webhooks that are sent to the killed server. A whole webhook follows from its label, so the checker knows its content.
import { createHmac } from 'node:crypto'
import { Chance, seedOf } from '../sqlite/kill-load.ts'

export const SECRET = 'of the server that is killed'

/** The planted fault: the server responds to its first webhook and dies before it stores it. */
export type Fault = 'none' | 'early-answer'

/** One in fifty is big. */
export function bodyOf(label: string): Buffer {
  const chance = new Chance(seedOf(label))
  const size = chance.happens(0.02) ? 5_000 + chance.below(60_000) : chance.below(400)
  return Buffer.from(JSON.stringify({ label, key: `k${chance.below(20)}`, filler: 'é👍"\\\u0000'.repeat(size / 8) }))
}

export function labelIn(body: Uint8Array): string {
  return (JSON.parse(Buffer.from(body).toString()) as { readonly label: string }).label
}

export function headersOf(label: string, body: Buffer): Readonly<Record<string, string | number>> {
  return {
    'content-type': 'application/json',
    'content-length': body.length,
    'x-github-event': 'push',
    'x-github-delivery': label,
    'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
  }
}
