// A subscriber with the library standardwebhooks.
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

export function standardConsumer(secret: string, handle: (event: { id: string }) => Promise<void>): Server {
  const webhook = new Webhook(secret)
  // In production, a table with a unique index, in the transaction of what `handle` does.
  const seen = new Set<string>()
  return createServer((request, response) => {
    const receive = async (): Promise<string | undefined> => {
      const body: unknown = webhook.verify(await text(request), request.headers as Record<string, string>)
      const { events = [], data } = body as { events?: { id: string }[]; data?: { challenge: string } }
      for (const event of events) {
        // Not by the highest id: what was committed late may have a lower one.
        if (!seen.has(event.id)) await handle(event)
        const [oldest = ''] = seen.add(event.id)
        if (seen.size > 10_000) seen.delete(oldest)
      }
      return data?.challenge
    }
    // What gets 400 comes again.
    receive().then(
      (answer) => response.end(answer),
      () => response.writeHead(400).end(),
    )
  })
}
