// docs/frameworks.md: inside Hono.
import { Hono } from 'hono'
import app from './sluice.config.ts'

await app.start()
export const server = new Hono()

server.all('/in/*', (context) => app.fetch(context.req.raw))
server.get('/', (context) => context.text('The rest of the site.'))
