// This file responds to broken HTTP requests and to failed routes in the same problem format as everywhere else (R5).
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { TOO_SLOW } from '../receive/body.ts'
import { toProblemResponse, type Problem } from '../receive/problem.ts'
import { abortBody } from './node-request.ts'
import { withoutPort } from './trusted-proxies.ts'

const TOO_LARGE: Problem = {
  code: 'HEADERS_TOO_LARGE',
  what: 'The headers are longer than 16 KB.',
  fix: 'Send shorter headers.',
}
const BROKEN: Problem = {
  code: 'REQUEST_BROKEN',
  what: 'The request is not valid HTTP.',
  fix: 'Check the sender; a server without tls accepts only http://.',
}
const BY_CODE: ReadonlyMap<string | undefined, Problem> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', TOO_SLOW],
  ['HPE_HEADER_OVERFLOW', TOO_LARGE],
])

type ReportProblem = (problem: Problem, address: string) => void

/** `rejectBrokenRequest` has only the socket: Node provides no response object. If a body is being read from the
    socket, its reader reports the fault; otherwise this function does. */
export function rejectBrokenRequest(
  error: Error & { readonly code?: string },
  socket: Socket,
  report: ReportProblem,
): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const problem = BY_CODE.get(error.code) ?? BROKEN
  const isRead = abortBody(socket, problem === TOO_SLOW ? 'too-slow' : 'cut-off')
  // A connection without any bytes sent no request that could be recorded.
  if (!isRead && socket.bytesRead > 0) report(problem, withoutPort(socket.remoteAddress ?? ''))
  if (socket.writable) {
    const { status, headers, body = '' } = toProblemResponse(problem)
    const length = Buffer.byteLength(body)
    const lines = Object.entries({ ...headers, 'content-length': length, connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  }
  socket.destroy(error)
}

/** `toRouteProblem` tells the reason to the operator in a warning, and not to the caller. */
export function toRouteProblem(error: unknown): Problem {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  return { code: 'ROUTE_FAILED', what: 'The route failed.', fix: 'Check the warning that the process printed.' }
}
