// This app delivers one event to each given endpoint at once, and prints the cost: attempts, stored bytes and memory.
import { randomBytes } from 'node:crypto'
import { Sluice } from '../../src/index.ts'
import type { DeliveryRecord } from '../../src/deliver/deliveries.ts'
import type { HostileReport } from './hostile-delivery.faults.test.ts'

const [friendly = '', ...hostile] = process.argv.slice(2)

/** `deadline` is the time for a whole delivery. */
async function startApp(deadline: number): Promise<Sluice> {
  const app = new Sluice({
    store: 'memory:',
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true, deadline },
  })
  app.delivery('versions', { on: 'version.*', retry: [] })
  await app.start()
  return app
}

/** For responses that never end. The others end by themselves, however slow the machine is. */
const hurried = await startApp(2_000)
const patient = await startApp(100_000)

/** Returns the deliveries that ended while this many were awaited. */
async function delivered(app: Sluice, urls: readonly string[], type: string): Promise<readonly string[]> {
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
for (const app of [hurried, patient]) {
  await delivered(
    app,
    Array.from({ length: 20 }, () => friendly),
    'version.friendly',
  )
}
globalThis.gc?.()
const before = process.memoryUsage.rss()
let peak = before
const look = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
const wanted = hostile.map((one) => one.split(' ') as [end: 'SUCCESS' | 'FAILED', url: string])
const deliver = async (app: Sluice, end: 'SUCCESS' | 'FAILED'): Promise<DeliveryRecord[]> => {
  const urls = wanted.flatMap(([own, url]) => (own === end ? url : []))
  const ids = await delivered(app, urls, 'version.hostile')
  return (await Promise.all(ids.map(async (id) => app.endpoints.deliveries(id)))).flat()
}
const [failed, succeeded] = await Promise.all([deliver(hurried, 'FAILED'), deliver(patient, 'SUCCESS')])
clearInterval(look)
const records = wanted.map(([end]) => (end === 'FAILED' ? failed : succeeded).shift())
const report: HostileReport = {
  grown: peak - before,
  ends: records.map((record) => ({ status: record?.status ?? 'none', attempts: record?.attemptCount ?? 0 })),
  kept: Math.max(...records.map((record) => JSON.stringify(record).length)),
}
process.stdout.write(JSON.stringify(report))
await Promise.all([hurried.stop(), patient.stop()])
