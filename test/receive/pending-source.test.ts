// A source whose secret comes by handshake is pending until then. Afterwards all processes know the secret, and no one else (R3).
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { notion } from '../../src/sources/notion.ts'
import { eventsIn, KEY, opened, problemOf } from './scene.ts'
import { ownFolder } from '../temporary-folder.ts'

const TOKEN = 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl'
const EVENT = JSON.stringify({ id: 'e1', type: 'page.updated', entity: { id: 'p1' } })
const PENDING = [403, 'SOURCE_PENDING']

const pending = (app: Sluice): Sluice => app.source('notion', notion())

function post(app: Sluice, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return app.fetch(new Request('http://hooks.test/in/notion', { method: 'POST', body, headers }))
}

function shake(app: Sluice, token = TOKEN): Promise<Response> {
  return post(app, JSON.stringify({ verification_token: token }))
}

function signed(app: Sluice, token = TOKEN): Promise<Response> {
  const signature = `sha256=${createHmac('sha256', token).update(EVENT).digest('hex')}`
  return post(app, EVENT, { 'x-notion-signature': signature })
}

async function refusal(response: Response): Promise<unknown> {
  return [response.status, (await problemOf(response)).code]
}

function another(store: Store, key = KEY): Sluice {
  const app = pending(new Sluice({ store, encryptionKey: key, log: false }))
  onTestFinished(() => app.stop())
  return app
}

describe('a pending source', () => {
  it('accepts nothing but the handshake', async () => {
    const { app, store } = await opened(pending, { encryptionKey: KEY })
    expect(await refusal(await signed(app))).toEqual(PENDING)
    expect(await refusal(await signed(app, ''))).toEqual(PENDING)
    expect(await refusal(await post(app, EVENT))).toEqual(PENDING)
    expect(await refusal(await post(app, '{'))).toEqual(PENDING)
    expect(await refusal(await shake(app, ''))).toEqual([403, 'HANDSHAKE_REFUSED'])
    expect(await eventsIn(store)).toEqual([])
    expect((await shake(app)).status).toBe(200)
    expect((await signed(app)).status).toBe(200)
    expect(await eventsIn(store)).toHaveLength(1)
  })

  it('verifies requests with the token once it has one', async () => {
    const { app, store } = await opened(pending, { encryptionKey: KEY })
    await shake(app)
    expect(await refusal(await signed(app, 'secret_guessed'))).toEqual([401, 'SIGNATURE_WRONG'])
    expect(await refusal(await post(app, EVENT))).toEqual([401, 'SIGNATURE_MISSING'])
    expect(await eventsIn(store)).toEqual([])
  })

  it('rejects a second handshake, and keeps the first', async () => {
    const { app } = await opened(pending, { encryptionKey: KEY })
    await shake(app)
    expect(await refusal(await shake(app, 'secret_of_somebody_else'))).toEqual([403, 'HANDSHAKE_REFUSED'])
    expect(await refusal(await signed(app, 'secret_of_somebody_else'))).toEqual([401, 'SIGNATURE_WRONG'])
    expect((await signed(app)).status).toBe(200)
  })

  it('accepts one of several simultaneous handshakes', async () => {
    const { app } = await opened(pending, { encryptionKey: KEY })
    const tokens = Array.from({ length: 8 }, (_, n) => `secret_${n}`)
    const answers = await Promise.all(tokens.map((token) => shake(app, token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const winner = tokens[answers.findIndex(({ status }) => status === 200)]
    expect((await signed(app, winner)).status).toBe(200)
  })

  it('has its token in every process, whichever of them got the handshake', async () => {
    const { app, store } = await opened(pending, { encryptionKey: KEY })
    const other = another(store)
    expect(await refusal(await signed(other))).toEqual(PENDING)
    await shake(app)
    expect((await signed(other)).status).toBe(200)
    expect(await refusal(await shake(other, 'secret_late'))).toEqual([403, 'HANDSHAKE_REFUSED'])
  })

  it('needs the key that encrypted the token', async () => {
    const { app, store } = await opened(pending, { encryptionKey: KEY })
    await shake(app)
    const [wrong, exchanged] = [Buffer.alloc(32, 'w').toString('base64'), Buffer.alloc(32, 'n').toString('base64')]
    const response = await signed(another(store, wrong))
    expect(response.status).toBe(503)
    expect(JSON.stringify(await response.json())).not.toContain(TOKEN)
    const both = pending(new Sluice({ store, encryptionKey: [exchanged, KEY], log: false }))
    onTestFinished(() => both.stop())
    expect((await signed(both)).status).toBe(200)
  })

  it('cannot be declared by an app without an encryption key', () => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(() => pending(app)).toThrow(/CONFIG_INVALID.*by handshake.*encryptionKey/)
  })
})

describe('the token', () => {
  it('is used after a restart, and cannot be read from the files of the store', async () => {
    const folder = ownFolder()
    const store = `sqlite:${join(folder, 'a.db')}`
    const first = pending(new Sluice({ store, encryptionKey: KEY, log: false }))
    expect((await shake(first)).status).toBe(200)
    await first.stop()
    const files = readdirSync(folder).map((file) => readFileSync(join(folder, file)))
    const all = Buffer.concat(files)
    expect(all.includes('source-secret')).toBe(true)
    for (const spelling of ['utf8', 'base64', 'hex'] as const) {
      const token = Buffer.from(TOKEN).toString(spelling).slice(8, 40)
      expect(all.includes(token)).toBe(false)
    }
    const second = pending(new Sluice({ store, encryptionKey: KEY, log: false }))
    onTestFinished(() => second.stop())
    expect((await signed(second)).status).toBe(200)
    expect(await refusal(await shake(second))).toEqual([403, 'HANDSHAKE_REFUSED'])
  })

  it('cannot be moved to another source', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const app = another(store)
    await shake(app)
    const read = { kind: 'source-secret', ids: ['notion'], after: '', n: 1 }
    const [doc] = (await store.readDocs(read)).docs
    const writes = [{ kind: 'source-secret', id: 'second', ifRev: 0, body: doc?.body }]
    await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    const thief = new Sluice({ store, encryptionKey: KEY, log: false }).source('second', notion(), {
      path: '/in/notion',
    })
    onTestFinished(() => thief.stop())
    expect((await signed(thief)).status).toBe(503)
  })
})
