// Three subscribers to the rankings, each with a server of its own on this machine: one is well, one is slow, one is broken.
import type { Clock, Sluice } from 'sluice'
import { serveHandler, type Handler, type Served } from '../kit/http.ts'
import { NEWS } from './flow.ts'
import { sleep } from './sleep.ts'

export interface Subscribers {
  close(): Promise<void>
}

export async function startSubscribers(app: Sluice, clock: Clock): Promise<Subscribers> {
  const answers: Readonly<Record<string, Handler>> = {
    'Steady subscriber': () => new Response('thanks'),
    'Slow subscriber': async ({ signal }) => {
      await sleep(clock, 1_500, signal)
      return new Response('thanks, at last')
    },
    'Broken subscriber': () => new Response('the database is down', { status: 500 }),
  }
  // On a kept store, the subscribers of the last start are still there, at addresses where no server listens any more.
  for (const { id, name } of await app.endpoints.list()) if (name in answers) await app.endpoints.delete(id)
  const servers: Served[] = []
  for (const [name, answer] of Object.entries(answers)) {
    const server = await serveHandler(answer)
    servers.push(server)
    await app.endpoints.create({ name, url: `${server.url}/hook`, eventFilter: [NEWS] })
  }
  return { close: async () => void (await Promise.all(servers.map((server) => server.close()))) }
}
