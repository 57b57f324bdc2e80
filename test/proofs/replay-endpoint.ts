// 100,000 stored events are replayed to one endpoint: no other gets them, a cancelled replay stops, and a resumed one misses none.
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { Sluice } from '../../src/index.ts'
import { inFolder } from '../figures/folder.ts'

export const title =
  '100,000 events replayed to one endpoint reach no other; cancelled half-way, the replay stops within a second; resumed, it misses none'

const AT_ONCE = 1_000
const RATE = 5_000
const MOST_MS_TO_STOP = 1_000
/** Any POST that is still under way arrives within this time. */
const QUIET_MS = 3_000

interface Receiver {
  readonly url: string
  readonly ids: string[]
  readonly server: Server
  /** When the last POST arrived. */
  last: number
}

async function receive(): Promise<Receiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: { events: { id: string }[] } }
      receiver.ids.push(...data.events.map(({ id }) => id))
      receiver.last = performance.now()
      response.writeHead(200).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = { url: `http://127.0.0.1:${port}/hook`, ids: [], server, last: 0 }
  return receiver
}

export async function run(context: ProofContext): Promise<Figure> {
  const given = new Map(context.args.map((arg) => arg.split('=', 2) as [string, string]))
  const events = Number(given.get('events') ?? 100_000)
  return inFolder(async (folder) => {
    const app = new Sluice({
      store: `sqlite:${join(folder, 'replay.db')}`,
      log: false,
      encryptionKey: `${'A'.repeat(43)}=`,
      delivery: { allowLoopback: true },
    })
    app.delivery('versions', { on: 'version.*' })
    await app.start()
    const [to, other] = [await receive(), await receive()]
    try {
      return await replayAndCheck(app, { to, other, events, progress: (part) => context.progress(part) })
    } finally {
      await app.stop()
      for (const { server } of [to, other]) {
        server.closeAllConnections()
        server.close()
      }
    }
  })
}

interface Scene {
  readonly to: Receiver
  readonly other: Receiver
  readonly events: number
  readonly progress: (part: number) => void
}

async function replayAndCheck(app: Sluice, { to, other, events, progress }: Scene): Promise<Figure> {
  for (let from = 0; from < events; from += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, events - from) }, (_, n) => String(from + n).padStart(7, '0'))
    await app.publish(ids.map((id) => ({ id, type: 'version.new', data: {} })))
  }
  const { id } = await app.endpoints.create({ url: to.url })
  await app.endpoints.create({ url: other.url })
  const { count, replay = '' } = await app.endpoints.replay(id, { from: 'beginning', rate: RATE })
  while (to.ids.length < events / 2) {
    progress(to.ids.length / events)
    await setTimeout(20)
  }
  const cancelled = performance.now()
  await app.admin.replays.cancel(replay)
  await setTimeout(QUIET_MS)
  const stoppedAfterMs = Math.max(0, Math.round(to.last - cancelled))
  const atStop = await app.admin.replays.show(replay)
  const sentAtStop = to.ids.length
  const isAccurate = atStop?.state === 'cancelled' && atStop.scanned === sentAtStop && atStop.reached !== undefined
  await app.admin.replays.resume(replay)
  while ((await app.admin.replays.show(replay))?.state === 'running' || to.ids.length < events) {
    progress(to.ids.length / events)
    await setTimeout(50)
    if (performance.now() - to.last > 60_000) break
  }
  const distinct = new Set(to.ids)
  const isInOrder = to.ids.every((one, at) => at === 0 || one > (to.ids[at - 1] ?? ''))
  const values = {
    events,
    found: count,
    ratePerSecond: RATE,
    sentAtStop,
    scannedAtStop: atStop?.scanned,
    stoppedAfterMs,
    delivered: to.ids.length,
    missing: events - distinct.size,
    repeated: to.ids.length - distinct.size,
    isInOrder,
    reachedOther: other.ids.length,
  }
  const isWhole = values.missing === 0 && isInOrder && values.reachedOther === 0
  return { holds: isWhole && isAccurate && stoppedAfterMs <= MOST_MS_TO_STOP, values }
}
