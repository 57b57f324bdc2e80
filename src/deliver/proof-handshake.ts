// The handshake of CloudEvents. An OPTIONS request asks the endpoint for permission, and its headers grant it. The
// status does not matter.
import type { Millis } from '../clock.ts'
import { checkUrl } from './http/addresses.ts'
import type { EndpointRate, EndpointTarget } from './endpoint.ts'
import { Exchange } from './http/exchange.ts'
import { mergeHeaders, type HeaderMap } from './http/headers.ts'
import type { SendDependencies } from './send-batch.ts'
import { parseDuration } from '../model/duration.ts'

export type HandshakeResult =
  /** `perMinute` is the rate that the endpoint allows; undefined means no limit. */
  | { readonly kind: 'granted'; readonly perMinute: number | undefined }
  | { readonly kind: 'refused'; readonly error: string }

const MAX_RESPONSE_BYTES = 1_024
const MINUTE: Millis = 60_000

export async function requestPermission(
  deps: SendDependencies,
  { endpoint, headers: own }: EndpointTarget,
  origin: string,
): Promise<HandshakeResult> {
  const { clock, deadline, userAgent } = deps
  const exchange = new Exchange(MAX_RESPONSE_BYTES)
  const cancel = clock.after(deadline, () =>
    exchange.abort(new Error(`timeout: no complete response within ${deadline} ms.`)),
  )
  try {
    const checked = checkUrl(endpoint.url, deps.guardRules)
    if (checked.kind === 'forbidden') return refused('The destination is not allowed.')
    const { origin: where, pathname, search } = checked.url
    const asked = { 'user-agent': userAgent, 'webhook-request-origin': origin, ...toRateHeaders(endpoint.rate) }
    const headers = mergeHeaders(own, asked)
    const { agent } = await deps.openTransport()
    const response = await exchange.send(agent, { origin: where, path: pathname + search, method: 'OPTIONS', headers })
    return parseHandshake(toSingleValues(response.headers), origin, endpoint.rate !== null)
  } catch (error) {
    return refused(error instanceof Error ? error.message : String(error))
  } finally {
    cancel()
  }
}

function parseHandshake(headers: HeaderMap, origin: string, isRateAsked: boolean): HandshakeResult {
  const allowed = headers['webhook-allowed-origin']?.trim()
  if (allowed === undefined) return refused('The endpoint did not return the header WebHook-Allowed-Origin.')
  if (allowed !== '*' && allowed.toLowerCase() !== origin.toLowerCase())
    return refused(`The endpoint permits ${JSON.stringify(allowed.slice(0, 100))}, but not ${origin}.`)
  const rate = headers['webhook-allowed-rate']?.trim()
  if (rate === '*' || (rate === undefined && !isRateAsked)) return { kind: 'granted', perMinute: undefined }
  if (rate !== undefined && /^[1-9]\d{0,8}$/.test(rate)) return { kind: 'granted', perMinute: Number(rate) }
  return refused('The endpoint did not return the header WebHook-Allowed-Rate.')
}

function refused(error: string): HandshakeResult {
  return { kind: 'refused', error }
}

function toRateHeaders(rate: EndpointRate | null): HeaderMap {
  return rate === null ? {} : { 'webhook-request-rate': String(toPerMinute(rate)) }
}

export function toPerMinute({ rate, per }: EndpointRate): number {
  return Math.max(1, Math.floor((rate * MINUTE) / parseDuration(per, 'rate.per')))
}

function toSingleValues(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderMap {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value].flat()[0] ?? '']),
  )
}
