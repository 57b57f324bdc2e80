// `serveHandler` serves a web-standard handler on this machine. A body is a stream in both directions.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** A handler is called as soon as the head of a request has arrived. */
export type Handler = (request: Request) => Response | Promise<Response>

export interface Served {
  readonly url: string
  close(): Promise<void>
}

export async function serveHandler(handler: Handler, port = 0): Promise<Served> {
  const server = createServer((incoming, outgoing) => void exchange(handler, incoming, outgoing))
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function exchange(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  try {
    // A handler learns when its caller hangs up.
    const gone = new AbortController()
    outgoing.once('close', () => gone.abort())
    const { status, headers, body } = await handler(toRequest(incoming, gone.signal))
    outgoing.writeHead(status, Object.fromEntries(headers))
    if (body === null) outgoing.end()
    else await pipeline(Readable.fromWeb(body), outgoing)
  } catch (error) {
    // Whoever has gone away needs no answer.
    if (!outgoing.headersSent) outgoing.writeHead(500).end(error instanceof Error ? error.message : String(error))
  }
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: 'half' as const } : {}
  const init = { method, headers: headers as Record<string, string>, signal, ...body }
  return new Request(new URL(url, `http://${headers.host ?? 'localhost'}`), init)
}
