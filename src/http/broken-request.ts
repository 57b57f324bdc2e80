// What never becomes a request, or a route fails on, is answered as every other problem is (R5).
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { problemAnswer, type Problem } from '../receive/problem.ts'

const TOO_SLOW: Problem = {
  code: 'REQUEST_TOO_SLOW',
  what: 'The request did not come in time.',
  fix: 'Look at the way between the sender and this process.',
}
const TOO_LARGE: Problem = {
  code: 'HEADERS_TOO_LARGE',
  what: 'The headers are longer than 16 KB.',
  fix: 'Send less in them.',
}
const BROKEN: Problem = {
  code: 'REQUEST_BROKEN',
  what: 'This is no HTTP request.',
  fix: 'Look at what sends it; a server without tls is called by http:// alone.',
}
const BY_CODE: ReadonlyMap<string | undefined, Problem> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', TOO_SLOW],
  ['HPE_HEADER_OVERFLOW', TOO_LARGE],
])

/** There is no response to write to: only the socket. */
export function answerBroken(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  if (socket.writable) {
    const { status, headers, body = '' } = problemAnswer(BY_CODE.get(error.code) ?? BROKEN)
    const length = Buffer.byteLength(body)
    const lines = Object.entries({ ...headers, 'content-length': length, connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  }
  socket.destroy(error)
}

/** Whoever wrote the route is told why, whoever called it is not. */
export function routeFailed(error: unknown): Problem {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  return { code: 'ROUTE_FAILED', what: 'The route failed.', fix: 'Look at the warning of the process.' }
}
