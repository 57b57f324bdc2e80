// The code in docs/frameworks.md that turns a request of Node into a web request, and sends the response back.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

// The public URL of this server: schemes that sign the URL, e.g. Twilio's, need it.
const PUBLIC_URL = process.env['PUBLIC_URL'] ?? 'http://localhost:3000'

export function webRequest(message: IncomingMessage, path = message.url): Request {
  const { method = 'GET', headers } = message
  if (message.readableDidRead) throw new Error('A parser in front has read the body: mount this before it.')
  const body = method === 'GET' || method === 'HEAD' ? null : Readable.toWeb(message)
  const init = { method, headers: headers as Record<string, string>, body, duplex: 'half' }
  return new Request(`${PUBLIC_URL}${path}`, init as RequestInit)
}

export async function answerWith(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.end(await answer.text())
}
