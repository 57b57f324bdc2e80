// R5: refused requests survive the process, at a cost that no stranger can increase, and without secrets.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openStore, type Store } from '../../src/index.ts'
import type { RefusedRequest } from '../../src/receive/refused-requests.ts'
import type { Receiving } from '../../src/app/receiving.ts'
import { github } from '../../src/sources/github.ts'
import { notion } from '../../src/sources/notion.ts'
import { notionAction } from '../../src/sources/notion-action.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { receivingOn, Written, writingBy } from './receiving-scene.ts'
import { githubHook, KEY, NOW, SECRET, textOf } from './scene.ts'
import { ownFolder } from '../temporary-folder.ts'

const WRITE_EVERY = 5_000

let clock: VirtualClock

beforeEach(() => {
  clock = new VirtualClock(NOW)
})

async function memory(): Promise<Store> {
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  return store
}

function onGithub(store: Store, options: { readonly encrypt?: boolean } = {}): Receiving {
  const receiving = receivingOn(store, { clock, key: KEY })
  receiving.source('github', github({ secret: SECRET }), options)
  return receiving
}

async function forged(receiving: Receiving, n: number | string, headers = {}): Promise<void> {
  const request = githubHook(JSON.stringify({ n }), { secret: 'another', headers })
  expect((await receiving.fetch(request, {})).status).toBe(401)
}

const excerpts = (kept: readonly RefusedRequest[]): readonly string[] => kept.map(({ excerpt }) => excerpt)

async function docIn(store: Store, id: string): Promise<{ readonly rev: number; readonly text: string }> {
  const [doc] = (await store.readDocs({ kind: 'refused', ids: [id], after: '', n: 1 })).docs
  return { rev: doc?.rev ?? 0, text: textOf(doc?.body) }
}

describe('a refused request', () => {
  it('is listed after a restart, with the reason and the fix', async () => {
    const folder = ownFolder()
    const address = `sqlite:${join(folder, 'a.db')}`
    const before = await openStore(address, { clock })
    const first = onGithub(before)
    for (let n = 0; n < 60; n++) await forged(first, n)
    await first.fetch(new Request('http://hooks.test/in/made-up'), {})
    const [known, lost] = [await first.admin.refused('github'), await first.admin.refused('')]
    await first.stop()
    await before.close()
    const after = await openStore(address, { clock })
    const second = onGithub(after)
    onTestFinished(() => after.close())
    expect(known).toHaveLength(50)
    expect(known[0]).toMatchObject({ code: 'SIGNATURE_WRONG', excerpt: '{"n":59}' })
    expect(await second.admin.refused('github')).toEqual(known)
    expect(await second.admin.refused('')).toEqual(lost)
    expect(lost).toMatchObject([{ code: 'SOURCE_UNKNOWN', path: '/in/made-up' }])
    expect(await second.admin.refused('made-up')).toEqual([])
    await forged(second, 'new')
    expect(excerpts(await second.admin.refused('github')).slice(0, 2)).toEqual(['{"n":"new"}', '{"n":59}'])
    expect(await second.admin.refused('github')).toHaveLength(50)
    await second.stop()
  })

  it('is written some seconds later, in one document with all others of that time', async () => {
    const written = new Written(await memory())
    const receiving = onGithub(written.store)
    for (let n = 0; n < 100; n++) await forged(receiving, n)
    clock.advance(WRITE_EVERY - 1)
    // A write that had begun would have ended by now.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(written.docs).toEqual([])
    clock.advance(1)
    await written.reached(1)
    await receiving.stop()
    expect(written.docs).toHaveLength(1)
  })

  it('is written even if the process is killed afterwards', async () => {
    const written = new Written(await memory())
    await forged(onGithub(written.store), 1)
    clock.advance(WRITE_EVERY)
    await written.reached(1)
    expect(excerpts(await onGithub(written.store).admin.refused('github'))).toEqual(['{"n":1}'])
  })

  it('neither waits for the store nor fails with it; it is written when the store works again', async () => {
    const real = await memory()
    let isDown = true
    const tried: string[] = []
    const written = new Written(real)
    const store = writingBy(written.store, (call) => {
      tried.push(call.writes[0]?.id ?? '')
      return isDown ? Promise.reject(new Error('down')) : written.store.writeDocs(call)
    })
    const receiving = onGithub(store)
    await forged(receiving, 1)
    for (let round = 1; round <= 3; round++) {
      clock.advance(WRITE_EVERY)
      while (tried.length < round || clock.next() === undefined) await new Promise((resolve) => setImmediate(resolve))
    }
    isDown = false
    clock.advance(WRITE_EVERY)
    await written.reached(1)
    expect(tried).toHaveLength(4)
    expect(JSON.parse((await docIn(real, 'github')).text)).toMatchObject([{ excerpt: '{"n":1}' }])
  })

  it('is listed by the process that refused it while the store fails', async () => {
    const store = await openStore('memory:', { clock })
    const receiving = onGithub(store)
    await forged(receiving, 1)
    await store.close()
    expect(excerpts(await receiving.admin.refused('github'))).toEqual(['{"n":1}'])
    await receiving.stop()
  })

  it('does not keep a process from stopping while the store hangs', async () => {
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const real = await memory()
    const store = writingBy(real, async (call) => {
      reached.resolve()
      await gate.promise
      return real.writeDocs(call)
    })
    const receiving = onGithub(store)
    await forged(receiving, 1)
    const state = { isStopped: false }
    const stopped = receiving.stop().then(() => (state.isStopped = true))
    await reached.promise
    while (!state.isStopped) {
      clock.advance(500)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await stopped
    expect(clock.monotonic()).toBeLessThanOrEqual(6_000)
    gate.resolve()
  })

  it('is written when a process stops, even if a slow sender uses up the timeout', async () => {
    const written = new Written(await memory())
    const receiving = onGithub(written.store)
    await forged(receiving, 1)
    const sender = Promise.withResolvers<void>()
    const body = new ReadableStream({
      pull: async (controller) => {
        await sender.promise
        controller.close()
      },
    })
    const slow = receiving.fetch(new Request('http://x/in/github', { method: 'POST', body, duplex: 'half' }), {})
    const stopped = receiving.stop()
    await written.reached(1)
    sender.resolve()
    await Promise.all([slow, stopped])
    expect(written.docs.length).toBeLessThanOrEqual(2)
    expect((await docIn(written.store, 'github')).text).toContain('SIGNATURE_MISSING')
  })
})

describe('two processes', () => {
  it('that write at the same time keep the newest entries of both', async () => {
    const real = await memory()
    const other = onGithub(real)
    let isFirst = true
    const mine = onGithub(
      writingBy(real, async (call) => {
        // Between the read and the write of the first process.
        if (isFirst) await other.stop()
        isFirst = false
        return real.writeDocs(call)
      }),
    )
    for (let n = 0; n < 80; n++) {
      await forged(n % 2 === 0 ? mine : other, n)
      clock.advance(1)
    }
    await mine.stop()
    const newest = Array.from({ length: 50 }, (_, n) => `{"n":${79 - n}}`)
    expect(excerpts(await onGithub(real).admin.refused('github'))).toEqual(newest)
  })

  it("list each other's entries", async () => {
    const store = await memory()
    const [one, other] = [onGithub(store), onGithub(store)]
    await forged(one, 'mine')
    clock.advance(10)
    await forged(other, 'its')
    await other.stop()
    expect(excerpts(await one.admin.refused('github'))).toEqual(['{"n":"its"}', '{"n":"mine"}'])
  })

  it('are not silenced by a process whose clock was wrong', async () => {
    const store = await memory()
    const ahead = onGithub(store)
    clock.set(NOW + 365 * 86_400_000)
    for (let n = 0; n < 50; n++) await forged(ahead, n)
    await ahead.stop()
    clock.set(NOW)
    const receiving = onGithub(store)
    await forged(receiving, 'now')
    expect(excerpts(await receiving.admin.refused('github'))).toEqual(['{"n":"now"}'])
    await receiving.stop()
    expect(excerpts(await onGithub(store).admin.refused('github'))).toEqual(['{"n":"now"}'])
  })
})

describe('a stranger', () => {
  it('that sends all the time, to any paths, causes two documents to be written every five seconds', async () => {
    const written = new Written(await memory())
    const receiving = onGithub(written.store)
    for (let second = 0; second < 60; second++) {
      for (let n = 0; n < 20; n++) {
        await forged(receiving, `${second}/${n}`)
        await receiving.fetch(new Request(`http://hooks.test/in/made-up-${second}-${n}`), {})
      }
      clock.advance(1_000)
      // Written five seconds after the first unwritten entry, which comes up to a second later.
      await written.reached(2 * Math.floor((second + 1) / 6))
    }
    expect(written.docs.length).toBeGreaterThanOrEqual(20)
    expect(written.docs.length).toBeLessThanOrEqual(24)
    expect(new Set(written.docs.map(({ kind, id }) => `${kind} ${id}`))).toEqual(
      new Set(['refused github', 'refused (none)']),
    )
  })

  it('causes no document longer than 64 KB', async () => {
    const written = new Written(await memory())
    const receiving = onGithub(written.store)
    for (let n = 0; n < 60; n++) {
      const headers = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-${at}`, '"\\'.repeat(at + 1)]))
      await forged(receiving, '\u0001'.repeat(1_000), { ...headers, 'x-long': 'x'.repeat(50_000), 'x-zz': 'short' })
      await receiving.fetch(new Request(`http://hooks.test/${'é'.repeat(10_000)}`), {})
    }
    await receiving.stop()
    expect(written.docs).toHaveLength(2)
    expect(Math.max(...written.docs.map(({ bytes }) => bytes))).toBeLessThanOrEqual(64 * 1024)
    const [newest, ...others] = await onGithub(written.store).admin.refused('github')
    expect(others.length).toBeGreaterThan(3)
    // A long header is omitted, so that there is room for the following ones.
    expect(newest?.headers['x-long']).toBeUndefined()
    expect(newest?.headers['x-0']).toBe('"\\')
  })

  it('whose request is too long to be kept does not displace others', async () => {
    const store = await memory()
    const receiving = onGithub(store)
    await forged(receiving, 'before')
    const request = githubHook('{}', { secret: 'another' })
    await receiving.fetch(request, { address: 'x'.repeat(100_000) })
    await receiving.stop()
    expect(excerpts(await onGithub(store).admin.refused('github'))).toEqual(['{"n":"before"}'])
  })
})

describe('a stored entry', () => {
  const OLD = 'the old secret, which others still take'

  it('contains no secret, whatever the reason of the rejection', async () => {
    const store = await memory()
    const receiving = receivingOn(store, { clock, key: KEY })
    receiving.source('key', notionAction({ secret: SECRET, header: 'x-hook' }), { maxBody: 1_000 })
    const send = (secret: string, more: RequestInit = {}, path = 'key'): Promise<Response> =>
      receiving.fetch(
        new Request(`http://hooks.test/in/${path}`, { method: 'POST', ...more, headers: { 'x-hook': secret } }),
        {},
      )
    const statuses = [
      await send(SECRET, { body: 'no json' }),
      await send(SECRET, { body: `{"in the body": "${SECRET}"` }),
      await send(SECRET, { body: 'x'.repeat(2_000) }),
      await send(OLD, { body: 'x'.repeat(2_000) }),
      await send(OLD, { method: 'PUT' }),
      await send(OLD, { body: '{}' }),
      await send(OLD, { body: '{}' }, 'kee'),
    ].map(({ status }) => status)
    expect(statuses).toEqual([400, 400, 413, 413, 405, 401, 404])
    expect((await receiving.admin.refused('key')).at(-1)).toMatchObject({
      excerpt: 'no json',
      code: 'BODY_NOT_UNDERSTOOD',
    })
    await receiving.stop()
    const kept = [(await docIn(store, 'key')).text, (await docIn(store, '(none)')).text].join()
    expect(kept).toContain(`"x-hook":"(${OLD.length} characters)"`)
    expect(kept).not.toContain(SECRET)
    expect(kept).not.toContain(OLD)
  })

  it('contains no token of a handshake that could not be stored', async () => {
    const store = await memory()
    let isDown = true
    const failing = writingBy(store, (call) => (isDown ? Promise.reject(new Error('down')) : store.writeDocs(call)))
    const receiving = receivingOn(failing, { clock, key: KEY })
    receiving.source('notion', notion(), {})
    const body = JSON.stringify({ verification_token: 'secret_that_will_be_sent_again' })
    const answer = await receiving.fetch(new Request('http://hooks.test/in/notion', { method: 'POST', body }), {})
    expect(answer.status).toBe(503)
    isDown = false
    await receiving.stop()
    const { text } = await docIn(store, 'notion')
    expect(JSON.parse(text)).toMatchObject([{ code: 'STORE_FAILED', bytes: body.length, excerpt: '' }])
    expect(text).not.toContain('secret_')
  })

  it('is encrypted if the payloads of the source are', async () => {
    const folder = ownFolder()
    const store = await openStore(`sqlite:${join(folder, 'a.db')}`, { clock })
    const receiving = onGithub(store, { encrypt: true })
    await forged(receiving, 'for nobody else')
    await receiving.stop()
    expect(excerpts(await onGithub(store, { encrypt: true }).admin.refused('github'))).toEqual([
      '{"n":"for nobody else"}',
    ])
    // Also if the source is no longer declared with encrypt.
    expect(await onGithub(store).admin.refused('github')).toHaveLength(1)
    const key = Buffer.alloc(32, 'w').toString('base64')
    const stranger = receivingOn(store, { clock, key })
    expect(await stranger.admin.refused('github')).toEqual([])
    stranger.source('github', github({ secret: SECRET }), { encrypt: true })
    await forged(stranger, 'under another key')
    await stranger.stop()
    expect(await receivingOn(store, { clock, key }).admin.refused('github')).toHaveLength(1)
    await store.close()
    const files = Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))))
    expect(files.includes('refused')).toBe(true)
    expect(files.includes('for nobody else')).toBe(false)
  })
})
