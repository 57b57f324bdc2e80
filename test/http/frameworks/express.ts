// docs/frameworks.md: inside Express.
import express from 'express'
import app from './sluice.config.ts'
import { answerWith, webRequest } from './web-request.ts'

await app.start()
export const server = express()

async function receive(request: express.Request, response: express.Response): Promise<void> {
  const { ip: address = 'unknown', originalUrl: target } = request
  await answerWith(await app.fetch(webRequest(request, target), { address, target }), response)
}

// Mount before express.json(): the signature covers the bytes, and a parser would consume them.
server.all('/in/:source', (request, response) => {
  // Some requests, e.g. TRACE, cannot become a web request.
  receive(request, response).catch(() => response.status(400).end())
})

server.use(express.json())
server.post('/orders', (request, response) => void response.json(request.body))
