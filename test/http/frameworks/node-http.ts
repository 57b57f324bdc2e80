// docs/frameworks.md: inside a server of plain node:http.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { app } from './sluice.config.ts'
import { answerWith, webRequest } from './web-request.ts'

async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
  const address = message.socket.remoteAddress ?? 'unknown'
  await answerWith(await app.fetch(webRequest(message), { address }), response)
}

export const server = createServer((message, response) => {
  // No web request can be made of a TRACE, say.
  handle(message, response).catch(() => response.writeHead(400).end())
})
