// Errors of handlers and responses of endpoints may quote the payload of an encrypted source, so they are encrypted like it.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineEvent,
  openStore,
  partial,
  PermanentError,
  Sluice,
  type FlowEvent,
  type Run,
  type Store,
} from '../../src/index.ts'
import { github } from '../../src/sources/index.ts'
import { subscriber } from '../deliver/subscriber.ts'
import { ownFolder } from '../temporary-folder.ts'
import { githubHook, KEY, SECRET } from './scene.ts'

const WORDS = 'nobody reads this'
const BODY = JSON.stringify({ text: WORDS })

function quoting({ events }: Pick<Run, 'events'>): string {
  return `cannot use ${events[0]?.text ?? ''}`
}

type Declared = Partial<Parameters<Sluice['flow']>[1]>

function declared(store: string | Store, options: Declared, key: string = KEY): Sluice {
  const app = new Sluice({ store, encryptionKey: key, log: false, delivery: { allowLoopback: true } })
  onTestFinished(() => app.stop())
  return app
    .source('github', github({ secret: SECRET }), { encrypt: true })
    .flow('f', { on: 'github/**', key: () => 'k', run: () => {}, ...options })
}

function refuseKey(event: FlowEvent): string {
  throw new Error(`no key in ${event.text}`)
}

/** Its error quotes the data. */
const QUOTED = defineEvent(
  'github/push',
  z.object({ text: z.string().refine(() => false, { error: ({ input }) => `cannot use ${String(input)}` }) }),
)

interface Kept {
  readonly store: string
  /** The whole content of the store's files, after the app was stopped. */
  readonly bytes: (app: Sluice) => Promise<string>
}

function kept(): Kept {
  const folder = ownFolder()
  return {
    store: `sqlite:${join(folder, 'texts.db')}`,
    bytes: async (app) => {
      await app.stop()
      return Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file)))).toString('latin1')
    },
  }
}

async function received(app: Sluice): Promise<void> {
  await app.start()
  expect((await app.fetch(githubHook(BODY))).status).toBe(202)
}

describe('the error of a handler', () => {
  it('that waits for its next attempt is encrypted in the file, and shown as it was thrown', async () => {
    const { store, bytes } = kept()
    const app = declared(store, {
      retry: ['1h'],
      run: (run) => {
        throw new Error(quoting(run))
      },
    })
    const retry = app.once('run.retry')
    await received(app)
    await retry
    const lane = await app.admin.lanes.get('f', 'k')
    expect(lane?.run?.attempts.map(({ error }) => error)).toEqual([`Error: cannot use ${BODY}`])
    expect((await bytes(app)).includes(WORDS)).toBe(false)
  })

  it.each<[string, NonNullable<Declared['run']>]>([
    [
      'dead',
      (run) => {
        throw new PermanentError(quoting(run))
      },
    ],
    ['partial', (run) => partial({ failed: [{ id: run.events[0]?.id ?? '', reason: quoting(run), permanent: true }] })],
  ])('of a %s run is encrypted in the file, and shown in its record and its dead letter', async (_, run) => {
    const { store, bytes } = kept()
    const app = declared(store, { run })
    const over = Promise.withResolvers<void>()
    app.onAny((name) => (name === 'run.dead' || name === 'run.partial' ? over.resolve() : undefined))
    await received(app)
    await over.promise
    const [deadLetter] = (await app.admin.deadLetters.list()).items
    expect(deadLetter?.reason).toContain(WORDS)
    expect(deadLetter?.kind === 'run' ? deadLetter.attempts[0]?.error : '').toContain(WORDS)
    const [record] = (await app.admin.runs.list({ flow: 'f' })).items
    expect(record?.reason).toContain(WORDS)
    expect((await bytes(app)).includes(WORDS)).toBe(false)
  })

  it.each<[string, string, Declared]>([
    ['a key function', 'key-failed', { key: refuseKey }],
    ['a schema', 'schema-failed', { on: QUOTED }],
  ])('of %s is encrypted in the file, and shown with the unrouted event', async (_name, reason, options) => {
    const { store, bytes } = kept()
    const app = declared(store, options)
    await received(app)
    const [unrouted] = (await app.admin.deadLetters.list({ kind: 'unrouted' })).items
    expect(unrouted).toMatchObject({ reason })
    expect(unrouted?.kind === 'unrouted' ? unrouted.error : '').toContain(WORDS)
    // The event is routed once more, and fails again.
    await app.admin.deadLetters.retry(unrouted?.id ?? '')
    await expect
      .poll(async () => (await app.admin.deadLetters.list({ kind: 'unrouted' })).items[0]?.id)
      .not.toBe(unrouted?.id)
    const [again] = (await app.admin.deadLetters.list({ kind: 'unrouted' })).items
    expect(again?.kind === 'unrouted' ? again.error : '').toContain(WORDS)
    expect((await bytes(app)).includes(WORDS)).toBe(false)
  })

  it('is replaced by a sentence for a process without the key', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const app = declared(store, {
      run: (run) => {
        throw new PermanentError(quoting(run))
      },
    })
    const dead = app.once('run.dead')
    await received(app)
    await dead
    const without = new Sluice({ store, encryptionKey: randomBytes(32).toString('base64'), log: false })
    onTestFinished(() => without.stop())
    const [deadLetter] = (await without.admin.deadLetters.list()).items
    expect(deadLetter?.reason).toBe('The text is encrypted, and this process has no key that decrypts it.')
  })
})

it('of a source without encrypt is stored unchanged', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const app = declared(store, {
    on: 'app/**',
    run: () => {
      throw new PermanentError('plain')
    },
  })
  const dead = app.once('run.dead')
  await app.start()
  await app.publish({ type: 'a' })
  await dead
  expect((await store.find({ kind: 'dead', filter: {}, cursor: '', n: 1 })).items[0]?.reason).toContain('plain')
})

describe('the answer of an endpoint', () => {
  it('that echoes the payload is encrypted in the file, and shown with its delivery', async () => {
    const { store, bytes } = kept()
    const to = await subscriber(({ body }) => ({ status: 500, body }))
    const app = declared(store, {}).delivery('raw', { on: 'github/**', retry: [] })
    const { id } = await app.endpoints.create({ url: to.url, eventFilter: ['github/**'] })
    const dead = app.once('run.dead')
    await received(app)
    await dead
    const [delivery] = await app.endpoints.deliveries(id)
    expect(delivery?.attempts[0]?.answer).toContain(WORDS)
    expect((await bytes(app)).includes(WORDS)).toBe(false)
    const again = declared(store, {}).delivery('raw', { on: 'github/**' })
    expect((await again.endpoints.deliveries(id))[0]?.attempts[0]?.answer).toContain(WORDS)
  })
})
