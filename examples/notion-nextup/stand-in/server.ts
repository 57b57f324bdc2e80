// The stand-in over real HTTP, for apps in other processes.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { NotionStandIn } from './notion.ts'

export interface StandInServer {
  readonly url: string
  close(): Promise<void>
}

export async function serveStandIn(standIn: NotionStandIn, port = 0): Promise<StandInServer> {
  const server = createServer((request, response) => void answer(request, response))
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const came = standIn.came(request.method ?? 'GET', request.url ?? '/')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers = new Headers(request.headers as Record<string, string>)
    const answered = await standIn.answer(came, headers, Buffer.concat(chunks).toString())
    response.writeHead(answered.status, Object.fromEntries(answered.headers)).end(await answered.text())
  }
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
