// This app delivers one event to each given endpoint at once, and prints the cost: attempts, stored bytes and memory.
import { randomBytes } from 'node:crypto'
import { Sluice } from '../../src/index.ts'
import type { HostileReport } from './hostile-delivery.faults.test.ts'

const [friendly = '', ...hostile] = process.argv.slice(2)
const app = new Sluice({
  store: 'memory:',
  log: false,
  encryptionKey: randomBytes(32).toString('base64'),
  delivery: { allowLoopback: true, deadline: 2_000 },
})
app.delivery('versions', { on: 'version.*', retry: [] })
await app.start()

/** Returns the deliveries that ended while this many were awaited. */
async function delivered(urls: readonly string[], type: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (const url of urls) ids.push((await app.endpoints.create({ url, eventFilter: [type] })).id)
  const ended = Promise.withResolvers<void>()
  let left = urls.length
  for (const name of ['run.done', 'run.dead'] as const) app.on(name, () => (--left === 0 ? ended.resolve() : undefined))
  await app.publish({ type, data: { text: 'x'.repeat(100) } })
  await ended.promise
  return ids
}

// The first delivery loads and compiles code, which is not a cost of the others.
await delivered(
  Array.from({ length: 20 }, () => friendly),
  'version.friendly',
)
globalThis.gc?.()
const before = process.memoryUsage.rss()
let peak = before
const look = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
const ids = await delivered(hostile, 'version.hostile')
clearInterval(look)
const records = await Promise.all(ids.map(async (id) => (await app.endpoints.deliveries(id))[0]))
const report: HostileReport = {
  grown: peak - before,
  ends: records.map((record) => ({ status: record?.status ?? 'none', attempts: record?.attemptCount ?? 0 })),
  kept: Math.max(...records.map((record) => JSON.stringify(record).length)),
}
process.stdout.write(JSON.stringify(report))
await app.stop()
