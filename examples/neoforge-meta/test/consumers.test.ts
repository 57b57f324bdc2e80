// The two subscribers of README.md, with the app in front of them.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { systemClock, type Sluice } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { hmacConsumer } from '../consumers/hmac.ts'
import { standardConsumer } from '../consumers/standard-webhooks.ts'
import { toEvent } from '../domain/events.ts'
import { TRUE_TIMES } from '../scenarios/world.ts'
import { build } from '../sluice.config.ts'

const env = { ...TRUE_TIMES, BATCH_INTERVAL: '50ms', RETRY_FIRST: '50ms', DISCOVERY_INTERVAL: '365d' }

const CONSUMERS = {
  'plain HMAC': {
    consumer: hmacConsumer,
    registration: { secret: 'shared-secret-key' },
    header: 'x-webhook-signature',
  },
  standardwebhooks: {
    consumer: standardConsumer,
    registration: { secret: 'whsec_c2hhcmVkLXNlY3JldC1rZXktb2YtYm90aA==', signing: { kind: 'standard' } },
    header: 'webhook-signature',
  },
} as const

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function startApp(): Promise<Sluice> {
  const options = { log: false } as const
  const app = build({ store: 'memory:', env, clock: systemClock, options, url: () => '', watch: (client) => client })
  await app.start()
  ends.push(() => app.stop())
  return app
}

/** Resolves when the next batch is delivered. */
function deliveredBy(app: Sluice): Promise<void> {
  return new Promise((resolve) => app.on('run.done', ({ flow }) => flow === 'versions' && resolve()))
}

/** Publishes new versions, and returns the ids of their events. */
async function publish(app: Sluice, n: number): Promise<readonly string[]> {
  const versions = Array.from({ length: n }, (_, at) => {
    const version = {
      component: 'NEOFORGE',
      version: `21.0.${at}`,
      type: 'release',
      url: '',
      deprecated: null,
    } as const
    return toEvent({ news: 'NEW_VERSION', version, changed: [] })
  })
  return (await app.publish(versions)).map(({ id }) => id)
}

describe.each(Object.entries(CONSUMERS))('the subscriber with %s', (_, { consumer, registration, header }) => {
  /** `fail` throws for an event whose handling fails. */
  async function listen(fail: (id: string) => void = () => {}) {
    const [begun, handled]: [string[], string[]] = [[], []]
    const server = consumer(registration.secret, async ({ id }) => {
      begun.push(id)
      fail(id)
      handled.push(id)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    ends.push(() => server.close().closeAllConnections())
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, begun, handled }
  }

  it('proves itself, and handles each event once, although a batch comes three times', async () => {
    let failures = 2
    let ids: readonly string[] = []
    const { url, begun, handled } = await listen((id) => {
      if (id === ids[1] && failures-- > 0) throw new Error('The database is down.')
    })
    const app = await startApp()
    const { id, proof } = await app.endpoints.create({ url, from: 'now', ...registration })
    expect(proof).toBe('proven')
    const delivered = deliveredBy(app)
    ids = await publish(app, 3)
    await delivered
    expect(handled).toEqual(ids)
    expect(begun).toEqual([ids[0], ids[1], ids[1], ids[1], ids[2]])
    const [delivery] = await app.endpoints.deliveries(id)
    expect(delivery).toMatchObject({ status: 'SUCCESS', attemptCount: 3 })
  })

  it('rejects what nobody signed', async () => {
    const { url, begun } = await listen()
    const body = JSON.stringify({ events: [{ id: 'forged' }] })
    const time = String(Math.floor(systemClock.now() / 1_000))
    const named = { 'webhook-id': 'msg_1', 'webhook-timestamp': time }
    for (const signature of ['', 'v1,Zm9yZ2Vk', 'ab'.repeat(32)]) {
      const { status } = await fetch(url, { method: 'POST', body, headers: { ...named, [header]: signature } })
      expect(status).toBe(400)
    }
    expect((await fetch(url)).status).toBe(400)
    expect(begun).toEqual([])
  })

  it('handles an event that comes late and has a lower id', async () => {
    const { url, handled } = await listen()
    const app = await startApp()
    await app.endpoints.create({ url, from: 'now', ...registration })
    for (const id of ['01b', '01a']) {
      const delivered = deliveredBy(app)
      await app.publish({ type: 'NEW_VERSION', id, data: { component: 'NEOFORGE', version: id } })
      await delivered
    }
    expect(handled).toEqual(['01b', '01a'])
  })
})
