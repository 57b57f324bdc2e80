// A request to Node's own server as the receiving part and the app's own routes want it.
import type { FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import type { RequestHead } from '../receive/receiver.ts'

export function headOf(request: FastifyRequest): RequestHead {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return { method: request.method, url: urlOf(request), headers, address: request.ip }
}

/** Nonsense in a host header is no reason to fail, and none to look for another path than the one that was asked for. */
function urlOf({ protocol, host, originalUrl }: FastifyRequest): URL {
  const origin = originOf(`${protocol}://${host}`)
  const path = originalUrl.startsWith('/') ? originalUrl : `/${originalUrl}`
  return URL.parse(`${origin ?? 'http://localhost'}${path}`) ?? NOWHERE
}

// Almost all requests are to one and the same.
const latest: { called: string; origin: string | undefined } = { called: '', origin: undefined }

function originOf(called: string): string | undefined {
  if (latest.called !== called) {
    Object.assign(latest, { called, origin: /^https?:/.test(called) ? URL.parse(called)?.origin : undefined })
  }
  return latest.origin
}

export function webRequest(request: FastifyRequest, { method, url, headers }: RequestHead): Request {
  const body = method === 'GET' || method === 'HEAD' ? null : (Readable.toWeb(request.raw) as ReadableStream)
  return new Request(url, { method, headers, body, duplex: 'half' })
}

const NOWHERE = new URL('http://localhost/')
