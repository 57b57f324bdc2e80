// The sides of the deliver bench. Each sends the same POSTs: Sluice from a durable store, a BullMQ worker that signs and posts, and
// a loop that only posts. Each side gets its work before the clock runs, and ends when the last POST is settled.
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { Sluice } from '../../src/app/sluice.ts'
import { BareQueue } from './bare-queue.ts'
import { bodyOf, postOf, SECRET, signedBy, TYPE } from './posts.ts'

export interface Work {
  readonly url: string
  readonly posts: number
  /** The number of POSTs in progress at the same time. */
  readonly atOnce: number
  /** An empty folder for this side alone. */
  readonly folder: string
  /** The address of the side's service, e.g. Redis. */
  readonly service: string
}

interface Ready {
  /** Resolves when the last POST is settled. */
  readonly run: () => Promise<void>
  readonly close: () => Promise<void>
}

type DeliverSide = (work: Work) => Promise<Ready>

export type SideName = keyof typeof sides

export const sides = {
  sluice: sluiceSide,
  undici: undiciSide,
  'bare queue': bareSide,
  bullmq: bullmqSide,
} satisfies Record<string, DeliverSide>

const FLOW = 'versions'
const PUBLISHED_AT_ONCE = 500
const WARM_UP = 2_000
const ENDPOINTS = 500

/** Each endpoint has a lane of its own and so one POST at a time; each event is for one endpoint. */
async function sluiceSide({ url, posts, atOnce, folder }: Work): Promise<Ready> {
  const key = Buffer.alloc(32, 'master').toString('base64')
  const store = `sqlite:${join(folder, 'deliver.db')}`
  const app = new Sluice({
    store,
    encryptionKey: key,
    log: false,
    maxConcurrentRuns: atOnce,
    delivery: { allowLoopback: true },
  })
  app.delivery(FLOW, { on: `${TYPE}.*`, window: { every: 0, maxEvents: 1 } })
  await app.start()
  for (let at = 0; at < ENDPOINTS; at++)
    await app.endpoints.create({ url: `${url}${at}`, secret: SECRET, eventFilter: [`${TYPE}.${at}`] })
  const done = counter()
  app.on('run.done', done.add)
  const publish = async (from: number, to: number): Promise<void> => {
    for (let first = from; first < to; first += PUBLISHED_AT_ONCE) {
      const some = Array.from({ length: Math.min(PUBLISHED_AT_ONCE, to - first) }, (_, at) => postOf(first + at))
      await app.publish(some.map(({ id, data }) => ({ id, type: `${TYPE}.${data.n % ENDPOINTS}`, data })))
    }
  }
  await publish(0, WARM_UP)
  await done.reached(WARM_UP)
  await app.admin.flows.pause(FLOW, { reason: 'It is being filled.', by: 'bench' })
  await publish(WARM_UP, WARM_UP + posts)
  return {
    run: async () => {
      await app.admin.flows.resume(FLOW)
      await done.reached(WARM_UP + posts)
    },
    close: () => app.stop(),
  }
}

/** undici alone: bodies and signatures are made before the clock runs. */
async function undiciSide({ url, posts, atOnce }: Work): Promise<Ready> {
  const agent = new Agent({ connections: atOnce })
  const all = async (work: readonly Made[]): Promise<void> => {
    let next = 0
    const loop = async (): Promise<void> => {
      for (let one = work[next++]; one !== undefined; one = work[next++]) await posted(agent, url, one)
    }
    await Promise.all(Array.from({ length: atOnce }, loop))
  }
  await all(made(WARM_UP))
  const work = made(posts)
  return { run: () => all(work), close: () => agent.close() }
}

/** The least that a durable queue must do: lease, sign, post, delete. It has no lanes, no order and no records. */
async function bareSide({ url, posts, atOnce, folder }: Work): Promise<Ready> {
  const agent = new Agent({ connections: atOnce })
  const queue = new BareQueue(join(folder, 'bare.db'))
  const post = async (n: number, data: string): Promise<void> => {
    const body = bodyOf(JSON.parse(data) as ReturnType<typeof postOf>, Date.now())
    await posted(agent, url, { body, headers: signedBy(body, `post-${n}`) })
  }
  queue.fill(Array.from({ length: WARM_UP }, (_, n) => JSON.stringify(postOf(n))))
  await queue.workedOff(atOnce, post)
  queue.fill(Array.from({ length: posts }, (_, n) => JSON.stringify(postOf(n))))
  return { run: () => queue.workedOff(atOnce, post), close: () => agent.close() }
}

/** What a developer writes today: one job per POST, which a worker signs and posts. */
async function bullmqSide({ url, posts, atOnce, service }: Work): Promise<Ready> {
  const { Queue, Worker } = await import('bullmq')
  const connection = { host: '127.0.0.1', port: Number(new URL(service).port) }
  const agent = new Agent({ connections: atOnce })
  const queue = new Queue(FLOW, { connection })
  await queue.obliterate({ force: true })
  const worker = new Worker(
    FLOW,
    async (job) => {
      const body = bodyOf(job.data as ReturnType<typeof postOf>, job.timestamp)
      await posted(agent, url, { body, headers: signedBy(body, job.id ?? '') })
    },
    { connection, concurrency: atOnce, autorun: false, removeOnComplete: { count: 0 } },
  )
  const done = counter()
  worker.on('completed', done.add)
  worker.on('error', (error) => console.error(error))
  const add = async (from: number, to: number): Promise<void> => {
    for (let first = from; first < to; first += PUBLISHED_AT_ONCE) {
      const some = Array.from({ length: Math.min(PUBLISHED_AT_ONCE, to - first) }, (_, at) => postOf(first + at))
      await queue.addBulk(some.map((data) => ({ name: TYPE, data, opts: { jobId: data.id } })))
    }
  }
  await add(0, WARM_UP)
  void worker.run()
  await done.reached(WARM_UP)
  await worker.pause()
  await add(WARM_UP, WARM_UP + posts)
  return {
    run: async () => {
      await worker.resume()
      await done.reached(WARM_UP + posts)
    },
    close: async () => {
      await worker.close()
      await queue.close()
      await agent.close()
    },
  }
}

interface Made {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

function made(count: number): readonly Made[] {
  return Array.from({ length: count }, (_, n) => {
    const body = bodyOf(postOf(n), Date.now())
    return { body, headers: signedBy(body, `post-${n}`) }
  })
}

async function posted(dispatcher: Agent, url: string, { body, headers }: Made): Promise<void> {
  const answer = await request(url, { method: 'POST', headers, body, dispatcher })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`The sink answered ${answer.statusCode}.`)
}

/** Counts, and resolves a promise when the count reaches a number. One caller may wait at a time. */
function counter(): { readonly add: () => void; readonly reached: (count: number) => Promise<void> } {
  let count = 0
  let awaited = { at: Infinity, ...Promise.withResolvers<void>() }
  return {
    add: () => {
      if (++count >= awaited.at) awaited.resolve()
    },
    reached: (at) => {
      awaited = { at, ...Promise.withResolvers<void>() }
      if (count >= at) awaited.resolve()
      return awaited.promise
    },
  }
}
