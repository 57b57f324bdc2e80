// This file converts a request to Node's server for the receiver and for routes of the app.
import type { FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { RequestHead } from '../receive/receiver.ts'
import { toRequestPath } from './request-target.ts'
import { withoutPort } from './trusted-proxies.ts'

type RequestTarget = Pick<FastifyRequest, 'method' | 'headers' | 'protocol' | 'host' | 'originalUrl' | 'ip'>

/** `toDirectRequestHead` is for requests without a proxy. */
export function toDirectRequestHead({ method = '', url = '', headers, socket }: IncomingMessage): RequestHead {
  const protocol = 'encrypted' in socket ? 'https' : 'http'
  return toRequestHead({
    method,
    headers,
    protocol,
    host: headers.host ?? '',
    originalUrl: url,
    ip: socket.remoteAddress ?? '',
  })
}

export function toRequestHead(request: RequestTarget): RequestHead {
  const headers: Record<string, string> = {}
  for (const name in request.headers) {
    const value = request.headers[name]
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  const { protocol, host, originalUrl } = request
  const { written, spelled } = parseOrigin(`${protocol}://${host}`)
  const path = toRequestPath(originalUrl)
  const url = URL.parse(spelled + path) ?? FALLBACK_URL
  return { method: request.method, url, calledUrl: written + path, headers, address: withoutPort(request.ip) }
}

interface Origin {
  readonly called: string
  /** The origin as the sender wrote it, if it is a valid origin. */
  readonly written: string
  readonly spelled: string
}

// A cache of one: almost all requests have the same origin.
let lastOrigin: Origin = { called: '', written: '', spelled: '' }

/** `parseOrigin` accepts an invalid host header: it must neither fail the request nor change its path. */
function parseOrigin(called: string): Origin {
  if (lastOrigin.called !== called) {
    const spelled = /^https?:/i.test(called) ? (URL.parse(called)?.origin ?? FALLBACK_ORIGIN) : FALLBACK_ORIGIN
    lastOrigin = { called, written: /^https?:\/\/[^/?#@]+$/i.test(called) ? called : spelled, spelled }
  }
  return lastOrigin
}

export function toWebRequest(request: FastifyRequest, { method, url, headers }: RequestHead): Request {
  const body = method === 'GET' || method === 'HEAD' ? null : (Readable.toWeb(request.raw) as ReadableStream)
  return new Request(url, { method, headers, body, duplex: 'half' })
}

const FALLBACK_ORIGIN = 'http://localhost'
const FALLBACK_URL = new URL(FALLBACK_ORIGIN)
