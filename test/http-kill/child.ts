// The server that is killed: it waits for its turn, then receives webhooks and runs them. Arguments: the file, and the planted fault.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Sluice } from '../../src/index.ts'
import { github } from '../../src/sources/github.ts'
import { SECRET } from './load.ts'

const [file = '', fault = 'none'] = process.argv.slice(2)

function built(): Sluice {
  return new Sluice({ store: `sqlite:${file}`, log: false, addressRate: { rate: Infinity, per: '1m' } })
    .source('github', github({ secret: SECRET }))
    .flow('gather', {
      on: 'github/push',
      key: (event) => (event.data as { readonly key: string }).key,
      window: { quiet: 20, max: 100 },
      run: () => {},
    })
}

/** The planted fault: responds before it stores, as many servers do, and is killed in between. */
async function tooEarly(): Promise<number> {
  const server: Server = createServer((message, response) => {
    void buffer(message).then(() => response.writeHead(202).end(() => process.kill(process.pid, 'SIGKILL')))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

// Otherwise this would be loaded when the server listens, too late for a short life.
await import('fastify')
// A killed process never writes its compile cache, so the process writes it early.
flushCompileCache()
// The parent may be killed too.
process.once('disconnect', () => process.exit())
process.send?.('ready')
await once(process, 'message')
const app = built()
await app.start()
const port = fault === 'none' ? Number(new URL((await app.listen({ port: 0 })).url).port) : await tooEarly()
process.send?.(port)
