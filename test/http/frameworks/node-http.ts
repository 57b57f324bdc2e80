// docs/frameworks.md: inside a server of plain node:http.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import app from './sluice.config.ts'
import { answerWith, webRequest } from './web-request.ts'

async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url: target = '/', socket } = message
  const address = socket.remoteAddress ?? 'unknown'
  await answerWith(await app.fetch(webRequest(message, target), { address, target }), response)
}

await app.start()
export const server = createServer((message, response) => {
  // Some requests, e.g. TRACE, cannot become a web request.
  handle(message, response).catch(() => response.writeHead(400).end())
})
