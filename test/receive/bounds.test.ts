// R4: a body is read and decompressed only up to its bound.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readBoundedBody, type ReadBody } from '../../src/receive/body.ts'
import { AT_GITHUB, eventsIn, githubHook, opened, problemOf, SECRET, textOf, withGithub } from './scene.ts'
import { github } from '../../src/sources/github.ts'
import { unverified } from '../../src/sources/credentials.ts'
import { BOMBS, bombOf } from './bombs.ts'

const MOST = 100_000
const PACKED = { maxBody: MOST, compressed: true }
const PLAIN = { maxBody: MOST, compressed: false }

function bodyOf(bytes: Uint8Array): ReadBody {
  return async (most) => (bytes.length > most ? 'too-large' : bytes)
}

const mustNotRead: ReadBody = () => Promise.reject(new Error('The body was read.'))

async function codeOf(result: ReturnType<typeof readBoundedBody>): Promise<string> {
  const got = await result
  return 'code' in got ? got.code : 'taken'
}

describe('a body', () => {
  it('of exactly the maximum size is accepted unchanged', async () => {
    const bytes = Buffer.alloc(MOST, 'é')
    expect(await readBoundedBody({ 'content-length': String(MOST) }, bodyOf(bytes), PLAIN)).toBe(bytes)
  })

  it('with a content-length above the bound is not read', async () => {
    expect(await codeOf(readBoundedBody({ 'content-length': String(MOST + 1) }, mustNotRead, PLAIN))).toBe(
      'BODY_TOO_LARGE',
    )
  })

  it('that is longer than its content-length is too large', async () => {
    const read = bodyOf(Buffer.alloc(MOST + 1))
    expect(await codeOf(readBoundedBody({ 'content-length': '3' }, read, PLAIN))).toBe('BODY_TOO_LARGE')
    expect(await codeOf(readBoundedBody({}, read, PLAIN))).toBe('BODY_TOO_LARGE')
  })

  it('that ends too early is rejected', async () => {
    expect(await codeOf(readBoundedBody({}, async () => 'cut-off', PLAIN))).toBe('BODY_CUT_OFF')
  })
})

describe('app.fetch', () => {
  const chunk = new Uint8Array(1_000)

  /** An endless stream; `pulled` counts what was read. */
  function endless(): { readonly body: ReadableStream; readonly seen: { pulled: number; cancelled: boolean } } {
    const seen = { pulled: 0, cancelled: false }
    const body = new ReadableStream({
      pull: (controller) => {
        seen.pulled++
        controller.enqueue(chunk)
      },
      cancel: () => void (seen.cancelled = true),
    })
    return { body, seen }
  }

  it('stops reading a stream at its bound, and cancels it', async () => {
    const { app } = await opened((one) => one.source('github', github({ secret: SECRET }), { maxBody: 10_000 }))
    const { body, seen } = endless()
    const request = new Request(AT_GITHUB, { method: 'POST', body, duplex: 'half' })
    const response = await app.fetch(request)
    expect(response.status).toBe(413)
    expect(seen).toEqual({ pulled: expect.toSatisfy((n: number) => n <= 13), cancelled: true })
  })

  it("waits for a slow sender no longer than Sluice's own server", async () => {
    const { app, clock } = await opened(withGithub)
    let cancelled = false
    const body = new ReadableStream({ start: (on) => on.enqueue(chunk), cancel: () => void (cancelled = true) })
    const answer = app.fetch(new Request(AT_GITHUB, { method: 'POST', body, duplex: 'half' }))
    await expect.poll(() => clock.next()).toBeDefined()
    clock.advance(29_000)
    expect(cancelled).toBe(false)
    clock.advance(1_000)
    expect(await problemOf(await answer)).toMatchObject({ status: 408, code: 'REQUEST_TOO_SLOW' })
    expect(cancelled).toBe(true)
    expect(await app.admin.sources.refused('github')).toMatchObject([{ code: 'REQUEST_TOO_SLOW' }])
  })

  it('tells an operator that the body of an API call did not arrive, and not that it is invalid JSON', async () => {
    const { app, clock } = await opened(withGithub)
    const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const call = (body: ReadableStream): Promise<Response> =>
      app.fetch(new Request('http://x/v1/purge', { method: 'POST', headers, body, duplex: 'half' }))
    const expected = { code: 'REQUEST_INVALID', detail: 'body: it did not arrive completely.' }
    const slow = call(new ReadableStream({ start: (on) => on.enqueue(chunk) }))
    await expect.poll(() => clock.next()).toBeDefined()
    clock.advance(30_000)
    expect(await problemOf(await slow)).toMatchObject(expected)
    const broken = call(new ReadableStream({ start: (on) => on.error(new Error('gone')) }))
    expect(await problemOf(await broken)).toMatchObject(expected)
  })

  it('rejects a stream that breaks off, or that somebody has read before', async () => {
    const { app, store } = await opened(withGithub)
    const broken = new ReadableStream({ start: (controller) => controller.error(new Error('gone')) })
    const request = new Request(AT_GITHUB, { method: 'POST', body: broken, duplex: 'half' })
    expect((await problemOf(await app.fetch(request))).code).toBe('BODY_CUT_OFF')
    const read = githubHook('{}')
    await read.text()
    expect((await problemOf(await app.fetch(read))).code).toBe('BODY_CUT_OFF')
    expect((await app.admin.sources.refused('github'))[0]?.fix).toContain('nothing reads the body before it')
    expect(await eventsIn(store)).toEqual([])
  })

  it('rejects a body that somebody has read in part, whatever its content-length', async () => {
    const { app, store } = await opened((one) => one.source('open', unverified({ verify: 'none' })))
    for (const headers of [{}, { 'content-length': '6' }, { 'content-length': '3' }] as Record<string, string>[]) {
      const body = new ReadableStream({
        start: (on) => {
          for (const part of ['one', 'two']) on.enqueue(Buffer.from(part))
          on.close()
        },
      })
      const request = new Request('http://hooks.test/in/open', { method: 'POST', body, headers, duplex: 'half' })
      const reader = request.body?.getReader()
      await reader?.read()
      reader?.releaseLock()
      expect(await problemOf(await app.fetch(request))).toMatchObject({ status: 400, code: 'BODY_CUT_OFF' })
    }
    expect(await eventsIn(store)).toEqual([])
  })

  it('rejects a body that is longer than its content-length', async () => {
    const { app, store } = await opened((one) => one.source('open', unverified({ verify: 'none' })))
    const headers = { 'content-length': '6' }
    const request = new Request('http://hooks.test/in/open', { method: 'POST', headers, body: '{"a":1}' })
    expect(await problemOf(await app.fetch(request))).toMatchObject({ status: 400, code: 'BODY_CUT_OFF' })
    expect(await eventsIn(store)).toEqual([])
  })

  it('rejects a request without the body that it declares', async () => {
    const { app, store } = await opened((one) => one.source('open', unverified({ verify: 'none' })))
    const send = async (length: number, body: string | null): Promise<number> => {
      const headers = { 'content-length': String(length) }
      return (await app.fetch(new Request('http://hooks.test/in/open', { method: 'POST', headers, body }))).status
    }
    // After a parser in front: no body at all, an empty one, or the rest of one.
    expect([await send(15, null), await send(15, ''), await send(15, '{"a":1}')]).toEqual([400, 400, 400])
    expect((await app.admin.sources.refused('open')).map(({ code }) => code)).toEqual(Array(3).fill('BODY_CUT_OFF'))
    expect(await eventsIn(store)).toEqual([])
    expect([await send(7, '{"a":1}'), await send(0, null)]).toEqual([202, 202])
    // A web request with this method cannot have a body, even if the framework received one.
    const bare = new Request('http://hooks.test/in/open', { headers: { 'content-length': '7' } })
    expect((await app.fetch(bare)).status).toBe(405)
  })

  it('verifies and stores the decompressed bytes', async () => {
    const { app, store } = await opened((one) =>
      one.source('github', github({ secret: SECRET }), { compressed: true, maxBody: MOST }),
    )
    const body = JSON.stringify({ text: 'é'.repeat(2_000) })
    const { headers } = githubHook(body, { headers: { 'content-encoding': 'gzip' } })
    const response = await app.fetch(new Request(AT_GITHUB, { method: 'POST', headers, body: gzipSync(body) }))
    expect(response.status).toBe(202)
    expect((await eventsIn(store)).map((event) => textOf(event.body))).toEqual([body])
  })
})

describe('a compressed body', () => {
  const text = Buffer.from('{"a":"packed"}')
  const packings = [
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
  ] as const

  it.each(packings)(
    'of %s is decompressed where that is allowed, and otherwise rejected unread',
    async (name, packed) => {
      const headers = { 'content-encoding': name }
      expect(Buffer.from((await readBoundedBody(headers, bodyOf(packed), PACKED)) as Uint8Array)).toEqual(text)
      expect(await codeOf(readBoundedBody(headers, mustNotRead, PLAIN))).toBe('ENCODING_NOT_ALLOWED')
    },
  )

  it.each(packings)('of %s that is broken or cut short is rejected', async (name, packed) => {
    const headers = { 'content-encoding': name }
    const short = packed.subarray(0, packed.length - 3)
    expect(await codeOf(readBoundedBody(headers, bodyOf(short), PACKED))).toBe('ENCODING_BROKEN')
    expect(await codeOf(readBoundedBody(headers, bodyOf(Buffer.from('no such thing')), PACKED))).toBe('ENCODING_BROKEN')
    expect(await codeOf(readBoundedBody(headers, bodyOf(Buffer.alloc(0)), PACKED))).not.toBe('taken')
  })

  it.each(['gzip, gzip', 'gzip,br', 'zstd', 'compress', '', 'constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'with the encoding %j is rejected unread',
    async (encoding) => {
      const headers = { 'content-encoding': encoding }
      expect(await codeOf(readBoundedBody(headers, mustNotRead, PACKED))).toBe('ENCODING_NOT_ALLOWED')
    },
  )

  it('may declare that it is not compressed, in any case', async () => {
    const headers = { 'content-encoding': ' Identity ' }
    expect(await codeOf(readBoundedBody(headers, bodyOf(text), PLAIN))).toBe('taken')
    expect(await codeOf(readBoundedBody({ 'content-encoding': 'GZIP' }, bodyOf(gzipSync(text)), PACKED))).toBe('taken')
  })

  it('may decompress to exactly the bound, and not a byte more', async () => {
    const headers = { 'content-encoding': 'gzip' }
    const all = await readBoundedBody(headers, bodyOf(gzipSync(Buffer.alloc(MOST))), PACKED)
    expect((all as Uint8Array).length).toBe(MOST)
    expect(await codeOf(readBoundedBody(headers, bodyOf(gzipSync(Buffer.alloc(MOST + 1))), PACKED))).toBe(
      'BODY_TOO_LARGE',
    )
  })

  it.each(BOMBS)('that is a bomb of %s is rejected', async (name) => {
    const bomb = await bombOf(name)
    // The compressed body is below the bound; otherwise the test would show nothing.
    expect(bomb.length).toBeLessThan(MOST)
    expect(await codeOf(readBoundedBody({ 'content-encoding': name }, bodyOf(bomb), PACKED))).toBe('BODY_TOO_LARGE')
  })
})
