// This file converts a request to Node's server for the receiver and for routes of the app: its head, target and body.
import type { FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadBody, ReadFailure } from '../receive/body.ts'
import type { Problem } from '../receive/problem.ts'
import type { RequestHead } from '../receive/receiver.ts'
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

/** `toRequestPath` returns the path and query. Some proxies write the whole URL where others write its path. */
function toRequestPath(target: string): string {
  if (target.startsWith('/')) return target
  const path = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1]
  return path === undefined || !path.startsWith('/') ? `/${path ?? target}` : path
}

/**
 * `targetFault` returns why a target is rejected, or undefined if every server reads its path the same way. Otherwise it
 * could pass a proxy's path rule as one path and be routed here as another: `new URL` reads `/in/..\v1/keys` as
 * `/v1/keys`, a proxy reads it as a path below `/in/`.
 */
export function targetFault(target: string): Problem | undefined {
  const query = target.indexOf('?')
  const sent = query === -1 ? target : target.slice(0, query)
  if (!sent.includes('\\') && pathAsUrl(toRequestPath(sent)) === toRequestPath(sent)) return undefined
  return {
    code: 'PATH_AMBIGUOUS',
    what: `Servers read the path ${JSON.stringify(sent.slice(0, 200))} differently.`,
    fix: 'Spell the path as in a URL: without \\, dot segments or fragments, and with special characters escaped.',
  }
}

function pathAsUrl(path: string): string | undefined {
  return URL.parse(`http://localhost${path}`)?.pathname
}

/** The sockets from which a body is being read. */
const bodyReaders = new WeakMap<Socket, (why: ReadFailure) => void>()

/** `abortBody` ends the reading of a body when its connection fails. It returns false if no body is being read from
    the socket. */
export function abortBody(socket: Socket, why: ReadFailure): boolean {
  const end = bodyReaders.get(socket)
  end?.(why)
  return end !== undefined
}

export function createNodeBodyReader(message: IncomingMessage): ReadBody {
  return (most, reserve = alwaysReserve) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = []
      let length = 0
      const end = (body: Awaited<ReturnType<ReadBody>>): void => {
        message.off('data', take).off('end', done).off('close', cutOff).off('error', cutOff)
        bodyReaders.delete(message.socket)
        resolve(body)
      }
      const take = (chunk: Buffer): void => {
        length += chunk.length
        const fault: ReadFailure | undefined =
          length > most ? 'too-large' : reserve(chunk.length) ? undefined : 'no-room'
        if (fault === undefined) return void chunks.push(chunk)
        chunks.length = 0
        end(fault)
        // The rest is discarded until the request must end: a sender that is cut off while it sends would not read the
        // response.
        message.resume()
      }
      const done = (): void => end(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length))
      const cutOff = (): void => end('cut-off')
      message.on('data', take).on('end', done).on('close', cutOff).on('error', cutOff)
      bodyReaders.set(message.socket, end)
    })
}

const alwaysReserve = (): boolean => true
