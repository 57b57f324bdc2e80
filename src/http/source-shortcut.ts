// Requests to sources go past the framework: it has nothing to do for them, and takes a third of their time.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { problemAnswer } from '../receive/problem.ts'
import type { SourceAnswer } from '../receive/source.ts'
import { routeFailed } from './broken-request.ts'
import type { Inbound } from './inbound.ts'
import { nodeBody } from './node-body.ts'
import { directHead } from './node-request.ts'
import { WITHOUT_BODY } from './web-fetch.ts'

export interface ShortcutParts {
  readonly inbound: Inbound
  /** Whoever is kept alive would keep the server from closing. */
  readonly isClosing: () => boolean
}

/** Only where no proxy is listed: who the sender is, behind one, the framework finds out. */
export function addSourceShortcut(server: Server, { inbound, isClosing }: ShortcutParts): void {
  const others = server.listeners('request')
  server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!inbound.isSource(request.method ?? '', pathOf(request.url ?? ''))) {
      for (const listener of others) Reflect.apply(listener, server, [request, response])
      return
    }
    void inbound
      .answer(directHead(request), { isDirect: true }, nodeBody(request))
      .catch((error: unknown) => problemAnswer(routeFailed(error)))
      .then((answer) => send(response, answer, isClosing()))
      // A source may answer what no response can be.
      .catch((error: unknown) => sendInstead(response, problemAnswer(routeFailed(error))))
  })
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function sendInstead(response: ServerResponse, answer: SourceAnswer): void {
  if (response.headersSent) response.destroy()
  else send(response, answer, true)
}

function send(response: ServerResponse, { status, headers, body = '' }: SourceAnswer, isLast: boolean): void {
  const length = WITHOUT_BODY.has(status) ? {} : { 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...headers, ...length, ...(isLast && { connection: 'close' }) })
  response.end(WITHOUT_BODY.has(status) ? undefined : body)
}
