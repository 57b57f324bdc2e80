// `addSourceShortcut` routes source requests past Fastify, which does nothing for them and takes a third of their time.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { toProblemResponse } from '../receive/problem.ts'
import type { SourceResponse } from '../receive/source.ts'
import { toRouteProblem } from './broken-request.ts'
import type { RequestRouter } from './request-router.ts'
import { createNodeBodyReader, toDirectRequestHead } from './node-request.ts'
import { STATUSES_WITHOUT_BODY } from './web-fetch.ts'

export interface SourceShortcutDependencies {
  readonly router: RequestRouter
  /** Returns whether the server closes: a kept-alive connection would prevent that. */
  readonly isClosing: () => boolean
}

/** Used only without a trusted proxy: behind one, Fastify determines the address of the sender. */
export function addSourceShortcut(server: Server, { router, isClosing }: SourceShortcutDependencies): void {
  const others = server.listeners('request')
  server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!router.isSourceRequest(request.method ?? '', pathOf(request.url ?? ''))) {
      for (const listener of others) Reflect.apply(listener, server, [request, response])
      return
    }
    void router
      .handle(toDirectRequestHead(request), { isDirect: true }, createNodeBodyReader(request))
      .catch((error: unknown) => toProblemResponse(toRouteProblem(error)))
      .then((answer) => writeResponse(response, answer, isClosing()))
      // A source may return a response that Node rejects.
      .catch((error: unknown) => sendOrDestroy(response, toProblemResponse(toRouteProblem(error))))
  })
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function sendOrDestroy(response: ServerResponse, answer: SourceResponse): void {
  if (response.headersSent) response.destroy()
  else writeResponse(response, answer, true)
}

function writeResponse(
  response: ServerResponse,
  { status, headers, body = '' }: SourceResponse,
  isLast: boolean,
): void {
  const length = STATUSES_WITHOUT_BODY.has(status) ? {} : { 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...headers, ...length, ...(isLast && { connection: 'close' }) })
  response.end(STATUSES_WITHOUT_BODY.has(status) ? undefined : body)
}
