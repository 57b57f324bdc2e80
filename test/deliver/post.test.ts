// Tests one POST: what is sent, what is kept of the response, and the error without one.
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import fc from 'fast-check'
import { systemClock } from '../../src/clock.ts'
import { headersFault } from '../../src/deliver/http/headers.ts'
import { post as postBy, type PostResult } from '../../src/deliver/http/post.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { closing, everywhere, listening, poster } from './listener.ts'

async function served(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listening(createHttpServer(answer), '127.0.0.1')}/hook`
}

/** A server that sends these bytes, regardless of the request. */
async function saying(say: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => void socket.once('data', () => say(socket)))
  return `http://127.0.0.1:${await listening(server, '127.0.0.1')}/hook`
}

test('the body and the headers arrive unchanged', async () => {
  const came = Promise.withResolvers<{ readonly request: IncomingMessage; readonly body: string }>()
  const url = await served((request, response) => {
    void text(request).then((body) => came.resolve({ request, body }))
    response.writeHead(202, { 'retry-after': '7' }).end('{"accepted":[]}')
  })
  const { post } = poster({ allowLoopback: true, userAgent: 'NeoForge-Meta-API/1.0' })
  const body = Buffer.from('{"events":["é👍"]}')
  const end = await post({ url, body, headers: { 'webhook-id': 'b-1' }, endpointHeaders: { 'X-Team': 'a b' } })
  const { request, body: heard } = await came.promise
  expect(heard).toBe(body.toString())
  expect([request.method, request.url]).toEqual(['POST', '/hook'])
  expect(request.headers).toEqual({
    host: new URL(url).host,
    connection: 'keep-alive',
    'accept-encoding': 'identity',
    'content-length': String(body.length),
    'content-type': 'application/json',
    'user-agent': 'NeoForge-Meta-API/1.0',
    'webhook-id': 'b-1',
    'x-team': 'a b',
  })
  expect(end).toMatchObject({ kind: 'answered', status: 202, retryAfter: '7', isComplete: true })
  expect(end.kind === 'answered' && end.body.toString()).toBe('{"accepted":[]}')
})

test('allowLoopback of one app does not affect another app with the same URL', async () => {
  let came = 0
  const url = await served((_request, response) => {
    came++
    response.end()
  })
  const { agent } = poster({ allowLoopback: true })
  // Rejected by the URL alone; the agent would allow it.
  const posted = (allowLoopback: boolean): Promise<PostResult> =>
    postBy({ url, body: Buffer.from('{}'), headers: {} }, { agent, clock: systemClock, allowLoopback })
  expect(await posted(true)).toMatchObject({ kind: 'answered', status: 200 })
  expect(await posted(false)).toMatchObject({ kind: 'failed', why: 'guarded' })
  expect(await posted(true)).toMatchObject({ kind: 'answered', status: 200 })
  expect(came).toBe(2)
})

test.each([
  [16_384, undefined, true],
  [16_385, undefined, false],
  [20_000, 20_000, true],
  [20_001, 20_000, false],
])('a response of %i bytes with the limit %s: complete is %s', async (length, maxAnswer, isComplete) => {
  const url = await served((request, response) => {
    request.resume()
    response.end('x'.repeat(length))
  })
  const end = await poster({ allowLoopback: true }).post({
    url,
    ...(maxAnswer === undefined ? {} : { maxResponseBytes: maxAnswer }),
  })
  expect(end).toMatchObject({ kind: 'answered', isComplete })
  expect(end.kind === 'answered' && end.body.length).toBe(Math.min(length, maxAnswer ?? 16_384))
})

test('POSTs share connections', async () => {
  const sockets = new Set<unknown>()
  const url = await served((request, response) => {
    sockets.add(request.socket)
    request.resume().on('end', () => response.end('ok'))
  })
  const { post } = poster({ allowLoopback: true })
  for (let n = 0; n < 5; n++) expect(await post({ url })).toMatchObject({ status: 200 })
  // The pool may not know yet that a connection is free when the next POST starts at once.
  expect(sockets.size).toBeLessThanOrEqual(2)
})

test.each([301, 302, 303, 307, 308])(
  'a redirect by %i is an answer like any other, and not followed',
  async (status) => {
    const target = await everywhere()
    const url = await served((request, response) => {
      request.resume()
      response.writeHead(status, { location: `http://127.0.0.1:${target.port}/` }).end()
    })
    expect(await poster({ allowLoopback: true }).post({ url })).toMatchObject({ kind: 'answered', status })
    expect(target.connections()).toBe(0)
  },
)

test('the deadline covers the whole exchange', async () => {
  const clock = new VirtualClock()
  const came = Promise.withResolvers<Socket>()
  const url = await saying(came.resolve)
  const posting = poster({ allowLoopback: true, clock, deadline: 30_000 }).post({ url })
  const socket = await came.promise
  const closed = closing(socket.resume())
  clock.advance(29_999)
  socket.write('HTTP/1.1 200 OK\r\n')
  clock.advance(1)
  expect(await posting).toEqual({
    kind: 'failed',
    why: 'timeout',
    error: 'No complete response within 30000 ms.',
    ms: 30_000,
  })
  await closed
})

test('a stopping process does not wait', async () => {
  const stop = new AbortController()
  const url = await saying(() => stop.abort())
  const { post } = poster({ allowLoopback: true, signal: stop.signal })
  expect(await post({ url })).toMatchObject({ kind: 'failed', why: 'stopped' })
  expect(await post({ url })).toMatchObject({ kind: 'failed', why: 'stopped' })
})

test.each([
  ['hung up before a word', 'cut-off', ''],
  ['hung up in the head', 'cut-off', 'HTTP/1.1 200 OK\r\ncontent-le'],
  ['hung up in the answer', 'cut-off', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"fai'],
  ['hung up between two chunks', 'cut-off', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n'],
  ['no HTTP', 'malformed', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['two lengths', 'malformed', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx'],
])('%s: %s', async (_, why, said) => {
  const url = await saying((socket) => socket.end(said))
  expect(await poster({ allowLoopback: true }).post({ url })).toMatchObject({ kind: 'failed', why })
})

test('an error status with a cut body still counts', async () => {
  const url = await saying((socket) => socket.end('HTTP/1.1 429 No\r\nretry-after: 9\r\ncontent-length: 10\r\n\r\nsl'))
  expect(await poster({ allowLoopback: true }).post({ url })).toMatchObject({
    kind: 'answered',
    status: 429,
    retryAfter: '9',
    isComplete: false,
  })
})

test.each([
  ['Host', 'evil.example'],
  ['content-length', '5'],
  ['Transfer-Encoding', 'chunked'],
  ['connection', 'close'],
  ['upgrade', 'h2c'],
  ['TE', 'trailers'],
  ['trailer', 'x'],
  ['keep-alive', '1'],
  ['proxy-authorization', 'x'],
  ['cookie', 'a=b'],
  ['expect', '100-continue'],
  ['webhook-signature', 'v1,x'],
  ['user-agent', 'x'],
  ['x-a', 'a\r\nhost: b'],
  ['x-a', 'a\u0000'],
  ['x-a', 'é'],
  ['x a', 'b'],
  ['', 'b'],
  ['x-a\r\nb', 'c'],
  ['x-long', 'x'.repeat(5_000)],
])('a forbidden endpoint header %j fails the POST', async (name, value) => {
  const listener = await everywhere()
  const url = `http://127.0.0.1:${listener.port}/`
  const end = await poster({ allowLoopback: true }).post({ url, endpointHeaders: { [name]: value } })
  expect(end).toMatchObject({ kind: 'failed', why: 'unsendable' })
  expect(listener.connections()).toBe(0)
})

test('the same header in two spellings is rejected', () => {
  expect(headersFault({ 'x-a': '1', 'X-A': '2' })).toBe('x-a occurs twice.')
})

test('the request has exactly the expected lines for every accepted header', async () => {
  let heard = ''
  const server = createServer((socket) => {
    let said = ''
    socket.on('data', (bytes) => {
      said += bytes.toString('latin1')
      const [head, body] = said.split('\r\n\r\n')
      if (head === undefined || body !== '{}') return
      heard = head
      said = ''
      socket.write('HTTP/1.1 204 OK\r\n\r\n')
    })
  })
  const url = `http://127.0.0.1:${await listening(server, '127.0.0.1')}/`
  const { post } = poster({ allowLoopback: true })
  await post({ url, body: Buffer.from('{}') })
  const usual = heard.split('\r\n')
  const deadLetter = fc.constantFrom('a', 'B', '-', ':', ' ', '\r', '\n', '\0', '\t', 'é', '\u010d', '\u010a', '1')
  const word = fc.string({ unit: deadLetter, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(fc.dictionary(word, word, { maxKeys: 3 }), async (extra) => {
      const end = await post({ url, endpointHeaders: extra, body: Buffer.from('{}') })
      if (headersFault(extra) !== undefined) return end.kind === 'failed' && end.why === 'unsendable'
      const lines = Object.entries(extra).map(([name, value]) => `${name.toLowerCase()}: ${value}`)
      expect(end.kind).toBe('answered')
      expect(heard.split('\r\n').toSorted()).toEqual([...usual, ...lines].toSorted())
      expect(/[\0\n\r]/.test(heard.replaceAll('\r\n', ''))).toBe(false)
      return true
    }),
    { numRuns: 2_000, seed: 7 },
  )
})
