// The two subscribers of README.md, with the app in front of them.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock, type Sluice } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { hmacConsumer } from '../consumers/hmac.ts'
import { standardConsumer } from '../consumers/standard-webhooks.ts'
import { toEvent } from '../domain/events.ts'
import { TRUE_TIMES } from '../scenarios/world.ts'
import { build } from '../sluice.config.ts'

const ENV = {
  ...TRUE_TIMES,
  BATCH_INTERVAL: '50ms',
  RETRY_FIRST: '50ms',
  WEBHOOK_PROOF: 'challenge',
  DISCOVERY_INTERVAL: '1d',
}

const KINDS = [
  ['plain HMAC', hmacConsumer, 'shared-secret-key', 'x-webhook-signature', {}],
  [
    'standardwebhooks',
    standardConsumer,
    'whsec_c2hhcmVkLXNlY3JldC1rZXktb2YtYm90aA==',
    'webhook-signature',
    { kind: 'standard' },
  ],
] as const

describe.each(KINDS)('the subscriber with %s', (_, consumer, secret, header, signing) => {
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  /** Lets the subscriber listen, and counts how often each event was handled. */
  async function listen(fail: (id: string) => boolean = () => false) {
    const handled: string[] = []
    const tries: string[] = []
    const server: Server = consumer(secret, async ({ id }) => {
      tries.push(id)
      if (fail(id)) throw new Error('The database is down.')
      handled.push(id)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    ends.push(() => server.close().closeAllConnections())
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, handled, tries }
  }

  async function startApp(): Promise<Sluice> {
    const url = (): string => ''
    const at = {
      store: 'memory:',
      env: ENV,
      clock: systemClock,
      options: { log: false },
      url,
      watch: <T>(of: T): T => of,
    }
    const app = build(at as Parameters<typeof build>[0])
    await app.start()
    ends.push(() => app.stop())
    return app
  }

  async function publish(app: Sluice, n: number): Promise<readonly string[]> {
    const versions = Array.from({ length: n }, (_value, at) => ({
      news: 'NEW_VERSION' as const,
      version: { component: 'NEOFORGE' as const, version: `21.0.${at}`, type: 'release', url: '', deprecated: null },
      changed: [],
    }))
    return (await app.publish(versions.map(toEvent))).map(({ id }) => id)
  }

  it('proves itself, verifies each batch, and handles each event once, although batches come again', async () => {
    let failures = 2
    const { url, handled, tries } = await listen((id) => id === ids[1] && failures-- > 0)
    const app = await startApp()
    const settings = Object.keys(signing).length === 0 ? {} : { signing: { kind: 'standard' as const } }
    const { id, proof } = await app.endpoints.create({ url, secret, ...settings })
    expect(proof).toBe('proven')
    const delivered = Promise.withResolvers<void>()
    app.on('run.done', ({ flow }) => flow === 'versions' && delivered.resolve())
    const ids: readonly string[] = await publish(app, 3)
    await delivered.promise
    expect(handled).toEqual(ids)
    expect(tries.filter((one) => one === ids[0])).toHaveLength(1)
    const [delivery] = await app.endpoints.deliveries(id)
    expect(delivery).toMatchObject({ status: 'SUCCESS', attemptCount: 3 })
  })

  it('rejects what nobody signed', async () => {
    const { url, handled } = await listen()
    const body = JSON.stringify({ events: [{ id: 'forged' }] })
    const time = String(Math.floor(systemClock.now() / 1_000))
    const named = { 'webhook-id': 'msg_1', 'webhook-timestamp': time }
    for (const signature of ['', 'v1,Zm9yZ2Vk', 'ab'.repeat(32)]) {
      const { status } = await fetch(url, { method: 'POST', body, headers: { ...named, [header]: signature } })
      expect(status).toBe(400)
    }
    expect((await fetch(url)).status).toBe(400)
    expect(handled).toEqual([])
  })

  it('handles a late event with a lower id', async () => {
    const { url, handled } = await listen()
    const app = await startApp()
    const settings = Object.keys(signing).length === 0 ? {} : { signing: { kind: 'standard' as const } }
    await app.endpoints.create({ url, secret, ...settings })
    for (const [n, id] of ['01b', '01a'].entries()) {
      const delivered = Promise.withResolvers<void>()
      app.once('run.done').then(() => delivered.resolve(), delivered.reject)
      await app.publish({ type: 'NEW_VERSION', id, data: { component: 'NEOFORGE', version: `21.0.${n}` } })
      await delivered.promise
    }
    expect(handled).toEqual(['01b', '01a'])
  })
})
