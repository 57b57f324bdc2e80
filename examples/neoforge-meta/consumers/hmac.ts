// A subscriber on plain Node.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'

export function hmacConsumer(secret: string, handle: (event: { id: string }) => Promise<void>): Server {
  // In production, a table with a unique index, in the transaction of what `handle` does.
  const seen = new Set<string>()
  return createServer((request, response) => {
    const receive = async (): Promise<string | undefined> => {
      const body = await text(request)
      const wanted = createHmac('sha256', secret).update(body).digest()
      // It throws if the lengths differ.
      if (!timingSafeEqual(wanted, Buffer.from(String(request.headers['x-webhook-signature']), 'hex')))
        throw new Error('The signature is forged.')
      const { events = [], data } = JSON.parse(body) as { events?: { id: string }[]; data?: { challenge: string } }
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
