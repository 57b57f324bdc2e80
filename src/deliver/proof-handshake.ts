// The handshake of CloudEvents. An OPTIONS request asks the endpoint for permission, and its headers grant it. The
// status does not matter.
import type { Millis } from '../clock.ts'
import { checkUrl } from './http/addresses.ts'
import type { EndpointRate } from './endpoint.ts'
import type { EndpointTarget } from './endpoints.ts'
import { Exchange } from './http/exchange.ts'
import { mergeHeaders, type HeaderMap } from './http/headers.ts'
import type { SendDependencies } from './send-batch.ts'
import { parseDuration } from '../model/duration.ts'

export type HandshakeResponse =
  /** `perMinute` is the rate that the endpoint allows; undefined means no limit. */
  | { readonly kind: 'granted'; readonly perMinute: number | undefined; readonly ms: Millis }
  | { readonly kind: 'refused'; readonly error: string; readonly ms: Millis }

const MAX_RESPONSE_BYTES = 1_024
const MINUTE: Millis = 60_000

export async function requestPermission(
  deps: SendDependencies,
  to: EndpointTarget,
  origin: string,
): Promise<HandshakeResponse> {
  const { endpoint } = to
  const { clock, deadline } = deps
  const began = clock.monotonic()
  const exchange = new Exchange(MAX_RESPONSE_BYTES)
  const cancel = clock.after(deadline, () =>
    exchange.abort(new Error(`timeout: no complete response within ${deadline} ms.`)),
  )
  const since = (): Millis => Math.round(clock.monotonic() - began)
  try {
    const checked = checkUrl(endpoint.url, deps.guardRules)
    if (checked.kind === 'forbidden') return { kind: 'refused', error: 'The destination is not allowed.', ms: since() }
    const { origin: where, pathname, search } = checked.url
    const requestHeaders = {
      'user-agent': deps.userAgent,
      'webhook-request-origin': origin,
      ...toRateHeaders(endpoint.rate),
    }
    const headers = mergeHeaders(to.headers, requestHeaders)
    const { agent } = await deps.openTransport()
    const response = await exchange.send(agent, { origin: where, path: pathname + search, method: 'OPTIONS', headers })
    return { ...parseHandshake(toSingleValues(response.headers), origin, endpoint.rate !== null), ms: since() }
  } catch (error) {
    return { kind: 'refused', error: error instanceof Error ? error.message : String(error), ms: since() }
  } finally {
    cancel()
  }
}

type ParsedHandshake =
  | { readonly kind: 'granted'; readonly perMinute: number | undefined }
  | { readonly kind: 'refused'; readonly error: string }

function parseHandshake(headers: HeaderMap, origin: string, isRateAsked: boolean): ParsedHandshake {
  const allowed = headers['webhook-allowed-origin']?.trim()
  if (allowed === undefined) return { kind: 'refused', error: 'It did not answer with WebHook-Allowed-Origin.' }
  if (allowed !== '*' && allowed.toLowerCase() !== origin.toLowerCase()) {
    return { kind: 'refused', error: `It permits ${JSON.stringify(allowed.slice(0, 100))}, but not ${origin}.` }
  }
  const rate = headers['webhook-allowed-rate']?.trim()
  if (rate === '*' || (rate === undefined && !isRateAsked)) return { kind: 'granted', perMinute: undefined }
  if (rate !== undefined && /^[1-9]\d{0,8}$/.test(rate)) return { kind: 'granted', perMinute: Number(rate) }
  return { kind: 'refused', error: 'It did not answer with a WebHook-Allowed-Rate.' }
}

function toRateHeaders(rate: EndpointRate | null): HeaderMap {
  return rate === null ? {} : { 'webhook-request-rate': String(toPerMinute(rate)) }
}

export function toPerMinute({ rate, per }: EndpointRate): number {
  return Math.max(1, Math.floor((rate * MINUTE) / parseDuration(per, 'rate.per')))
}

function toSingleValues(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderMap {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? (value[0] ?? '') : (value ?? ''),
    ]),
  )
}
