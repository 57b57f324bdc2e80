// docs/frameworks.md: inside Express.
import express from 'express'
import { app } from './sluice.config.ts'
import { answerWith, webRequest } from './web-request.ts'

export const server = express()

async function receive(request: express.Request, response: express.Response): Promise<void> {
  const address = request.ip ?? 'unknown'
  await answerWith(await app.fetch(webRequest(request, request.originalUrl), { address }), response)
}

// Before express.json(): the signature is over the bytes, and whoever parses them first takes them away.
server.all('/in/:source', (request, response) => {
  // No web request can be made of a TRACE, say.
  receive(request, response).catch(() => response.status(400).end())
})

server.use(express.json())
server.post('/orders', (request, response) => void response.json(request.body))
