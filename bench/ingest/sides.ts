// The sides of the ingest bench. Each verifies, deduplicates and stores the same signed webhooks: Sluice, and what people use today.
// Sluice's own server without a store shows what storing may cost at most.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { fastify, type FastifyInstance } from 'fastify'
import { RequestRouter } from '../../src/http/request-router.ts'
import { serve } from '../../src/http/server.ts'
import { systemClock } from '../../src/index.ts'
import { Traces } from '../../src/observe/trace/spans.ts'
import { createDeclaredSource } from '../../src/receive/source-options.ts'
import { Intake, type IntakeDependencies } from '../../src/publish/intake.ts'
import { Receiver } from '../../src/receive/receiver.ts'
import { RefusedRequests } from '../../src/receive/refused-requests.ts'
import { Sluice } from '../../src/app/sluice.ts'
import { github } from '../../src/sources/index.ts'
import { BareTable } from './bare-table.ts'
import { EVENT, PATH, SECRET } from './webhooks.ts'

interface Served {
  readonly port: number
  readonly close: () => Promise<void>
}

export type SideName = keyof typeof sides

const FLOW = 'build'
const EVERYBODY = { rate: Infinity, per: 60_000 } as const

export const sides = {
  sluice: sluiceSide,
  'verifies only': verifyingSide,
  'inserts only': insertingSide,
  bullmq: bullmqSide,
  'bullmq, synced': bullmqSide,
  'pg-boss': pgBossSide,
  'graphile-worker': graphileSide,
} as const

/** Durable, signed, deduplicated, into a thousand lanes whose windows are open. */
async function sluiceSide(folder: string, service: string): Promise<Served> {
  const store = service === '' ? `sqlite:${join(folder, 'ingest.db')}` : service
  // Operators read from this machine, without a key.
  const app = new Sluice({ store, log: false, addressRate: EVERYBODY, admin: { open: 'loopback' } })
  app.source('github', github({ secret: SECRET }))
  app.flow(FLOW, {
    on: `github/${EVENT}`,
    key: (event) => event.subject,
    window: { quiet: '1h', max: '2h', maxEvents: 1_000_000, maxBytes: 1e12 },
    run: () => {},
  })
  await app.start()
  const { url } = await app.listen({ port: 0 })
  return { port: portOf(url), close: () => app.stop() }
}

const stored = 'stored' as const

/** The same server, source and steps, up to the store. */
function verifyingSide(): Promise<Served> {
  return serverThat((events) => Promise.resolve(events.map(({ id }) => ({ id, kind: stored, of: undefined }))))
}

/** The least that storing must do: each request becomes a row of one table, synced before the response. */
function insertingSide(folder: string): Promise<Served> {
  const table = new BareTable(join(folder, 'bare.db'))
  return serverThat(async (events) => {
    await table.insert(events)
    return events.map(({ id }) => ({ id, kind: stored, of: undefined }))
  })
}

async function serverThat(store: IntakeDependencies['store']): Promise<Served> {
  const intake = new Intake({ store, maxEvents: 20_000, maxBytes: 1e9 })
  const receiver = new Receiver({
    clock: systemClock,
    now: () => systemClock.now(),
    intake,
    refusedRequests: new RefusedRequests(),
    readSecrets: () => Promise.resolve([SECRET]),
    saveSecret: () => Promise.resolve(false),
    addressRate: EVERYBODY,
    emit: () => {},
  })
  receiver.declare(createDeclaredSource('github', github({ secret: SECRET }), {}))
  const serving = await serve(
    new RequestRouter({
      receiver,
      clock: systemClock,
      routes: [],
      findUnreadyReason: () => Promise.resolve(undefined),
      api: nobody,
      traces: new Traces(undefined),
    }),
    {
      port: 0,
    },
  )
  return { port: portOf(serving.url), close: () => serving.close() }
}

const nobody = (): never => {
  throw new Error('The bench has no API.')
}

interface Arrived {
  readonly delivery: string
  readonly body: Buffer
}

/** What a developer writes today: Fastify, the raw body, the HMAC by hand, and the queue's own call. */
async function fastifyWith(store: (arrived: Arrived) => Promise<unknown>): Promise<FastifyInstance> {
  const server = fastify()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  server.post(PATH, async (request, reply) => {
    const body = request.body as Buffer
    const wanted = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`)
    const given = Buffer.from(String(request.headers['x-hub-signature-256']))
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return reply.code(401).send()
    await store({ delivery: String(request.headers['x-github-delivery']), body })
    return reply.code(202).send()
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  return server
}

async function bullmqSide(_folder: string, service: string): Promise<Served> {
  const { Queue } = await import('bullmq')
  const queue = new Queue(FLOW, {
    connection: { url: service, host: '127.0.0.1', port: Number(new URL(service).port) },
  })
  const server = await fastifyWith(({ delivery, body }) =>
    queue.add(EVENT, JSON.parse(body.toString()), { jobId: delivery }),
  )
  return served(server, () => queue.close())
}

async function pgBossSide(_folder: string, service: string): Promise<Served> {
  const { PgBoss } = await import('pg-boss')
  const boss = new PgBoss({ connectionString: service, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue(FLOW)
  const server = await fastifyWith(({ delivery, body }) =>
    boss.send(FLOW, JSON.parse(body.toString()) as object, { singletonKey: delivery }),
  )
  return served(server, () => boss.stop())
}

async function graphileSide(_folder: string, service: string): Promise<Served> {
  const { makeWorkerUtils } = await import('graphile-worker')
  const utils = await makeWorkerUtils({ connectionString: service })
  await utils.migrate()
  const server = await fastifyWith(({ delivery, body }) =>
    utils.addJob(FLOW, JSON.parse(body.toString()), { jobKey: delivery }),
  )
  return served(server, () => utils.release() as Promise<void>)
}

function served(server: FastifyInstance, end: () => Promise<unknown>): Served {
  const address = server.server.address()
  const close = async (): Promise<void> => {
    await server.close()
    await end()
  }
  return { port: typeof address === 'object' && address !== null ? address.port : 0, close }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
