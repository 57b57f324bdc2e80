// What never becomes a request, or a route fails on, is answered as every other problem is (R5).
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { TOO_SLOW } from '../receive/bounds.ts'
import { problemAnswer, type Problem } from '../receive/problem.ts'
import { endReading } from './node-body.ts'
import { withoutPort } from './trusted-proxies.ts'

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

type Tell = (problem: Problem, address: string) => void

/** There is no response to write to: only the socket. Whoever reads a body from it tells of it; else it is told here. */
export function answerBroken(error: Error & { readonly code?: string }, socket: Socket, tell: Tell): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const problem = BY_CODE.get(error.code) ?? BROKEN
  const isRead = endReading(socket, problem === TOO_SLOW ? 'too-slow' : 'cut-off')
  // Who connects and says nothing sent nothing that could be refused.
  if (!isRead && socket.bytesRead > 0) tell(problem, withoutPort(socket.remoteAddress ?? ''))
  if (socket.writable) {
    const { status, headers, body = '' } = problemAnswer(problem)
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
