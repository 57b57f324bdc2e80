// A delivery to a subscriber that verifies its signature, and a forged request that the subscriber rejects.
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Sluice } from 'sluice'
import { Webhook } from 'standardwebhooks'

const app = new Sluice({
  store: 'memory:',
  log: false,
  encryptionKey: randomBytes(32).toString('base64'),
  delivery: { allowLoopback: true }, // the subscriber runs on this machine
})
app.delivery('versions', { on: 'version.*' })
await app.start()

// The subscriber.
interface Message {
  readonly data: { readonly events: readonly { readonly data: unknown }[] }
}
let secret = ''
const subscriber = createServer((request, response) => void receive(request, response)).listen(0, '127.0.0.1')

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    // The signature covers the bytes: verify the text, and parse nothing before.
    const body = await text(request)
    const { data } = new Webhook(secret).verify(body, request.headers as Record<string, string>) as Message
    console.log('verified', JSON.stringify(data.events.map((event) => event.data)))
    response.writeHead(204).end()
  } catch {
    console.log('rejected')
    response.writeHead(401).end()
  }
}

await new Promise((listening) => subscriber.once('listening', listening))
const address = subscriber.address()
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`

secret = (await app.endpoints.create({ url })).secret
const delivered = app.once('run.done')
await app.publish({ type: 'version.new', data: { version: '21.0.1' } })
await delivered
await fetch(url, { method: 'POST', body: '{"data":{"events":[{"data":"forged"}]}}' })
subscriber.close()
await app.stop()
