// The handshake of CloudEvents: the other side is asked by OPTIONS whether it lets us in, and says so in headers. Its status
// says nothing.
import type { Millis } from '../clock.ts'
import { checkUrl } from './addresses.ts'
import type { EndpointRate } from './endpoint.ts'
import type { Addressed } from './endpoints.ts'
import { Exchange } from './exchange.ts'
import { joined, type Headers } from './headers.ts'
import type { PostingParts } from './posting.ts'
import { millis } from '../model/duration.ts'

export type Leave =
  /** `perMinute`: no more than that; undefined: as we like. */
  | { readonly kind: 'granted'; readonly perMinute: number | undefined; readonly ms: Millis }
  | { readonly kind: 'refused'; readonly error: string; readonly ms: Millis }

const ANSWER_MAX = 1_024
const MINUTE: Millis = 60_000

export async function askLeave(parts: PostingParts, to: Addressed, origin: string): Promise<Leave> {
  const { endpoint } = to
  const { clock, deadline } = parts
  const began = clock.monotonic()
  const exchange = new Exchange(ANSWER_MAX)
  const cancel = clock.after(deadline, () => exchange.end(new Error(`timeout: no whole answer within ${deadline} ms.`)))
  const since = (): Millis => Math.round(clock.monotonic() - began)
  try {
    const checked = checkUrl(endpoint.url, parts.rules)
    if (checked.kind === 'forbidden') return { kind: 'refused', error: 'The destination is not allowed.', ms: since() }
    const { origin: where, pathname, search } = checked.url
    const asked = { 'user-agent': parts.userAgent, 'webhook-request-origin': origin, ...rateAsked(endpoint.rate) }
    const headers = joined(to.headers, asked)
    const { agent } = await parts.way()
    const heard = await exchange.with(agent, { origin: where, path: pathname + search, method: 'OPTIONS', headers })
    return { ...answered(oneEach(heard.headers), origin, endpoint.rate !== null), ms: since() }
  } catch (error) {
    return { kind: 'refused', error: error instanceof Error ? error.message : String(error), ms: since() }
  } finally {
    cancel()
  }
}

type Answered =
  | { readonly kind: 'granted'; readonly perMinute: number | undefined }
  | { readonly kind: 'refused'; readonly error: string }

function answered(headers: Headers, origin: string, isRateAsked: boolean): Answered {
  const allowed = headers['webhook-allowed-origin']?.trim()
  if (allowed === undefined) return { kind: 'refused', error: 'It did not answer with WebHook-Allowed-Origin.' }
  if (allowed !== '*' && allowed.toLowerCase() !== origin.toLowerCase()) {
    return { kind: 'refused', error: `It lets in ${JSON.stringify(allowed.slice(0, 100))}, and not ${origin}.` }
  }
  const rate = headers['webhook-allowed-rate']?.trim()
  if (rate === '*' || (rate === undefined && !isRateAsked)) return { kind: 'granted', perMinute: undefined }
  if (rate !== undefined && /^[1-9]\d{0,8}$/.test(rate)) return { kind: 'granted', perMinute: Number(rate) }
  return { kind: 'refused', error: 'It did not answer with a WebHook-Allowed-Rate.' }
}

function rateAsked(rate: EndpointRate | null): Headers {
  return rate === null ? {} : { 'webhook-request-rate': String(perMinuteOf(rate)) }
}

export function perMinuteOf({ rate, per }: EndpointRate): number {
  return Math.max(1, Math.floor((rate * MINUTE) / millis(per, 'rate.per')))
}

function oneEach(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? (value[0] ?? '') : (value ?? ''),
    ]),
  )
}
