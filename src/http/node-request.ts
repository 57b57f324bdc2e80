// A request to Node's own server as the receiving part and the app's own routes want it.
import type { FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { RequestHead } from '../receive/receiver.ts'
import { withoutPort } from './trusted-proxies.ts'

type Target = Pick<FastifyRequest, 'method' | 'headers' | 'protocol' | 'host' | 'originalUrl' | 'ip'>

/** Of one that nothing stands before. */
export function directHead({ method = '', url = '', headers, socket }: IncomingMessage): RequestHead {
  const protocol = 'encrypted' in socket ? 'https' : 'http'
  return headOf({
    method,
    headers,
    protocol,
    host: headers.host ?? '',
    originalUrl: url,
    ip: socket.remoteAddress ?? '',
  })
}

export function headOf(request: Target): RequestHead {
  const headers: Record<string, string> = {}
  for (const name in request.headers) {
    const value = request.headers[name]
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  const { protocol, host, originalUrl } = request
  const { written, spelled } = originOf(`${protocol}://${host}`)
  const path = pathOf(originalUrl)
  const url = URL.parse(spelled + path) ?? NOWHERE
  return { method: request.method, url, called: written + path, headers, address: withoutPort(request.ip) }
}

/** Some proxies write the whole address where others write its path. */
function pathOf(target: string): string {
  if (target.startsWith('/')) return target
  const path = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1]
  return path === undefined || !path.startsWith('/') ? `/${path ?? target}` : path
}

interface Origin {
  readonly called: string
  /** As it was called, if that can be an origin. */
  readonly written: string
  readonly spelled: string
}

// Almost all requests are to one and the same.
let latest: Origin = { called: '', written: '', spelled: '' }

/** Nonsense in a host header is no reason to fail, and none to look for another path than the one that was asked for. */
function originOf(called: string): Origin {
  if (latest.called !== called) {
    const spelled = /^https?:/i.test(called) ? (URL.parse(called)?.origin ?? HERE) : HERE
    latest = { called, written: /^https?:\/\/[^/?#@]+$/i.test(called) ? called : spelled, spelled }
  }
  return latest
}

export function webRequest(request: FastifyRequest, { method, url, headers }: RequestHead): Request {
  const body = method === 'GET' || method === 'HEAD' ? null : (Readable.toWeb(request.raw) as ReadableStream)
  return new Request(url, { method, headers, body, duplex: 'half' })
}

const HERE = 'http://localhost'
const NOWHERE = new URL(HERE)
