// Tests the guard between a name and a connection: every resolved address is checked, once, and then pinned.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { request } from 'undici'
import { afterEach, expect, test, vi } from 'vitest'
import type { Lookup } from '../../src/deliver/http/guard.ts'
import type { PostResult } from '../../src/deliver/http/post.ts'
import { decideOutcome } from '../../src/deliver/outcome.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { CERTIFICATE, KEY } from './certificate.ts'
import { closing, everywhere, listening, poster } from './listener.ts'

afterEach(() => vi.unstubAllEnvs())

const toUs: Lookup = async () => ['127.0.0.1']

const fault = (end: PostResult): string => (end.kind === 'failed' ? end.why : `${end.kind} ${end.status}`)

/** Returns the next list of addresses on each call, and the last one from then on. */
function flipping(...answers: readonly (readonly string[])[]): Lookup & { readonly asked: () => number } {
  let asked = 0
  const lookup: Lookup = async () => answers[Math.min(asked++, answers.length - 1)] ?? []
  return Object.assign(lookup, { asked: () => asked })
}

async function tlsEcho(): Promise<{ readonly port: number; readonly names: (string | false | null)[] }> {
  const names: (string | false | null)[] = []
  const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (socket: TLSSocket) => {
    names.push(socket.servername)
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'))
  })
  return { port: await listening(server, '127.0.0.1'), names }
}

test('D3 a name is resolved once, and the connection uses the checked address with the name for TLS', async () => {
  const { port, names } = await tlsEcho()
  // A second lookup would lead to an address without a listener.
  const lookup = flipping(['127.0.0.1'], ['127.0.0.9'])
  const { post } = poster({ lookup, allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await post({ url: `https://hook.example.com:${port}/` }))).toBe('answered 200')
  expect(lookup.asked()).toBe(1)
  expect(names).toEqual(['hook.example.com'])
})

test('D3 rebinding from a public to an internal address makes no connection', async () => {
  const listener = await everywhere()
  const clock = new VirtualClock()
  // An address of an unused network: the connection fails or times out.
  const lookup = flipping(['2000::1'], ['127.0.0.1'])
  const { post } = poster({ lookup, clock })
  const posting = post({ url: `https://rebind.example.com:${listener.port}/` })
  const first = await Promise.race([posting, soon()])
  clock.advance(10_000)
  expect(['connect', 'timeout']).toContain(fault(first ?? (await posting)))
  expect(lookup.asked()).toBe(1)
  expect(fault(await post({ url: `https://rebind.example.com:${listener.port}/` }))).toBe('dns')
  expect(listener.connections()).toBe(0)
})

/** Enough microtasks for the lookup. */
async function soon(): Promise<undefined> {
  await new Promise((resolve) => void setImmediate(resolve))
  return undefined
}

test('D3 rebinding between two connections makes no second connection', async () => {
  const { port } = await tlsEcho()
  const lookup = flipping(['127.0.0.1'], ['0.0.0.0'])
  const { post } = poster({ lookup, allowLoopback: true, ca: CERTIFICATE })
  const url = `https://hook.example.com:${port}/`
  expect([fault(await post({ url })), fault(await post({ url }))]).toEqual(['answered 200', 'dns'])
})

test.each([
  ['one forbidden among public ones', ['8.8.8.8', '2606:4700::1111', '10.0.0.1']],
  ['the forbidden one first', ['127.0.0.1', '8.8.8.8']],
  ['the forbidden one in IPv6', ['8.8.8.8', '::ffff:127.0.0.1']],
  ['fifty, the last one forbidden', [...Array.from({ length: 49 }, (_, at) => `8.8.8.${at}`), '169.254.169.254']],
  ['what is no address', ['example.com']],
])('%s: rejected', async (_, answer) => {
  const listener = await everywhere()
  const { post } = poster({ lookup: async () => answer })
  expect(fault(await post({ url: `https://x.example.com:${listener.port}/` }))).toBe('dns')
  expect(listener.connections()).toBe(0)
})

const unknown: Lookup = async () => Promise.reject(new Error('queryA ENOTFOUND x.example.com'))

test('without TLS only this machine is called, even if another host claims its name', async () => {
  const listener = await everywhere()
  for (const allowLoopback of [true, false]) {
    const { agent } = poster({ lookup: toUs, allowLoopback })
    const calling = request(`http://hook.example.com:${listener.port}/`, { dispatcher: agent })
    await expect(calling).rejects.toThrow('The destination is not allowed.')
  }
  expect(listener.connections()).toBe(0)
})

test('a connection that is reset at once is not reported as forbidden', async () => {
  const server = createServer((socket) => void socket.resetAndDestroy())
  const port = await listening(server, '127.0.0.1')
  const { post } = poster({ allowLoopback: true })
  const ends = await Promise.all(Array.from({ length: 100 }, async () => post({ url: `http://127.0.0.1:${port}/` })))
  expect(ends.filter((end) => end.kind !== 'failed' || !['connect', 'cut-off'].includes(end.why))).toEqual([])
})

const postedBy = async (lookup: Lookup): Promise<PostResult> =>
  poster({ lookup }).post({ url: 'https://x.example.com/' })

test('only the log reveals whether an internal name exists', async () => {
  const ends = [
    await postedBy(unknown),
    await postedBy(async () => []),
    await postedBy(async () => ['10.0.0.1']),
    await postedBy(async () => ['8.8.8.8', '169.254.169.254']),
  ]
  const said = { kind: 'failed', why: 'dns', error: 'The host name resolves to no public address.' }
  expect(ends).toEqual(ends.map(() => expect.objectContaining(said) as unknown))
  // The outcome of the batch and the stored attempt are the same too.
  const reason = `dns: ${said.error}`
  const outcomes = ends.map((end) => decideOutcome(end, ['a'], 0))
  expect(outcomes).toEqual(outcomes.map(() => expect.objectContaining({ kind: 'retry', reason }) as unknown))
  expect(outcomes.map((outcome) => ('detail' in outcome ? outcome.detail : undefined))).toEqual([
    'x.example.com: queryA ENOTFOUND x.example.com',
    'x.example.com has no address.',
    'x.example.com resolves to 10.0.0.1, which is a forbidden address.',
    'x.example.com resolves to 169.254.169.254, which is a forbidden address.',
  ])
})

test('a silent name server costs one connect timeout', async () => {
  const clock = new VirtualClock()
  const asked = Promise.withResolvers<void>()
  const lookup = async (): Promise<never> => {
    asked.resolve()
    return new Promise<never>(() => {})
  }
  const posting = poster({ lookup, clock }).post({ url: 'https://x.example.com/' })
  await asked.promise
  clock.advance(10_000)
  expect(await posting).toMatchObject({ why: 'timeout', ms: 10_000 })
})

test('a shorter deadline applies before the connection exists, and nothing is sent after it', async () => {
  const clock = new VirtualClock()
  let said = ''
  const closed = Promise.withResolvers<void>()
  const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        said += bytes.toString()
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      })
  })
  server.on('connection', (socket: Socket) => void socket.on('close', closed.resolve))
  const port = await listening(server, '127.0.0.1')
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<readonly string[]>()]
  const lookup: Lookup = async () => {
    asked.resolve()
    return answer.promise
  }
  const { post } = poster({ lookup, clock, deadline: 5_000, allowLoopback: true, ca: CERTIFICATE })
  const posting = post({ url: `https://hook.example.com:${port}/` })
  await asked.promise
  clock.advance(5_000)
  expect(await posting).toMatchObject({ why: 'timeout', ms: 5_000 })
  answer.resolve(['127.0.0.1'])
  await closed.promise
  expect(said).toBe('')
})

test('a certificate for another name, or an untrusted one, makes no connection', async () => {
  const { port } = await tlsEcho()
  const trusting = poster({ lookup: toUs, allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await trusting.post({ url: `https://other.example.com:${port}/` }))).toBe('tls')
  expect(fault(await trusting.post({ url: `https://127.0.0.1:${port}/` }))).toBe('answered 200')
  const usual = poster({ lookup: toUs, allowLoopback: true })
  expect(fault(await usual.post({ url: `https://hook.example.com:${port}/` }))).toBe('tls')
})

test('an untrusted certificate makes no connection, even with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const { port } = await tlsEcho()
  const usual = poster({ lookup: toUs, allowLoopback: true })
  expect(fault(await usual.post({ url: `https://hook.example.com:${port}/` }))).toBe('tls')
  const trusting = poster({ lookup: toUs, allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await trusting.post({ url: `https://other.example.com:${port}/` }))).toBe('tls')
  expect(fault(await trusting.post({ url: `https://hook.example.com:${port}/` }))).toBe('answered 200')
})

test('a stalled handshake costs one connect timeout, and the socket is closed', async () => {
  const clock = new VirtualClock()
  const came = Promise.withResolvers<Socket>()
  const port = await listening(
    createServer((socket) => came.resolve(socket.resume())),
    '127.0.0.1',
  )
  const posting = poster({ clock, allowLoopback: true }).post({ url: `https://127.0.0.1:${port}/` })
  const socket = await came.promise
  const closed = closing(socket)
  clock.advance(10_000)
  expect(await posting).toMatchObject({ why: 'timeout', ms: 10_000 })
  await closed
})

test('destroy does not wait for connections in the making', async () => {
  const came = Promise.withResolvers<Socket>()
  const port = await listening(
    createServer((socket) => came.resolve(socket.resume())),
    '127.0.0.1',
  )
  // The virtual clock stands still, so no timeout can end the POST.
  const { post, agent } = poster({ clock: new VirtualClock(), allowLoopback: true })
  const posting = post({ url: `https://127.0.0.1:${port}/` })
  const closed = closing(await came.promise)
  await agent.destroy()
  expect(await posting).toMatchObject({ kind: 'failed' })
  await closed
})

test('a port without a listener is a connect failure', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  server.close()
  await once(server, 'close')
  expect(fault(await poster({ allowLoopback: true }).post({ url: `http://127.0.0.1:${port}/` }))).toBe('connect')
})

test('a proxy from the environment is not used', async () => {
  const proxy = await everywhere()
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
    vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`)
  }
  vi.stubEnv('NODE_USE_ENV_PROXY', '1')
  const { port } = await tlsEcho()
  const { post } = poster({ lookup: async () => ['127.0.0.1'], allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await post({ url: `https://hook.example.com:${port}/` }))).toBe('answered 200')
  expect(proxy.connections()).toBe(0)
})
