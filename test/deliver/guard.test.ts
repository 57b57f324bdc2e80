// The guard between a name and a connection: what is resolved is looked at, all of it, once, and pinned.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { request } from 'undici'
import { afterEach, expect, test, vi } from 'vitest'
import type { Lookup } from '../../src/deliver/lookup.ts'
import type { Posted } from '../../src/deliver/post.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { CERTIFICATE, KEY } from './certificate.ts'
import { closing, everywhere, listening, poster } from './listener.ts'

afterEach(() => vi.unstubAllEnvs())

const toUs: Lookup = async () => ['127.0.0.1']

const fault = (end: Posted): string => (end.kind === 'failed' ? end.why : `${end.kind} ${end.status}`)

/** Answers each time with the next one, and the last one for ever. */
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

test('a name is looked up once, and the connection goes to what was looked at, under its name', async () => {
  const { port, names } = await tlsEcho()
  // Whoever asks twice is led to where nobody listens.
  const lookup = flipping(['127.0.0.1'], ['127.0.0.9'])
  const { post } = poster({ lookup, allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await post({ url: `https://hook.example.com:${port}/` }))).toBe('answered 200')
  expect(lookup.asked()).toBe(1)
  expect(names).toEqual(['hook.example.com'])
})

test('rebinding: public at first and ours the second time, nobody comes', async () => {
  const listener = await everywhere()
  const clock = new VirtualClock()
  // Of no network that is in use: the connection fails, or waits until time is up.
  const lookup = flipping(['2000::1'], ['127.0.0.1'])
  const { post } = poster({ lookup, clock })
  const posting = post({ url: `https://rebind.example.com:${listener.port}/` })
  const first = await Promise.race([posting, soon()])
  clock.advance(10_000)
  expect(['connect', 'timeout']).toContain(fault(first ?? (await posting)))
  expect(lookup.asked()).toBe(1)
  expect(fault(await post({ url: `https://rebind.example.com:${listener.port}/` }))).toBe('guarded')
  expect(listener.connections()).toBe(0)
})

/** Long enough for the lookup, which is a matter of microtasks. */
async function soon(): Promise<undefined> {
  await new Promise((resolve) => void setImmediate(resolve))
  return undefined
}

test('rebinding: allowed at first and forbidden at the next connection, which is not made', async () => {
  const { port } = await tlsEcho()
  const lookup = flipping(['127.0.0.1'], ['0.0.0.0'])
  const { post } = poster({ lookup, allowLoopback: true, ca: CERTIFICATE })
  const url = `https://hook.example.com:${port}/`
  expect([fault(await post({ url })), fault(await post({ url }))]).toEqual(['answered 200', 'guarded'])
})

test.each([
  ['one forbidden among public ones', ['8.8.8.8', '2606:4700::1111', '10.0.0.1']],
  ['the forbidden one first', ['127.0.0.1', '8.8.8.8']],
  ['the forbidden one in IPv6', ['8.8.8.8', '::ffff:127.0.0.1']],
  ['fifty, the last one forbidden', [...Array.from({ length: 49 }, (_, at) => `8.8.8.${at}`), '169.254.169.254']],
  ['what is no address', ['example.com']],
])('%s: refused', async (_, answer) => {
  const listener = await everywhere()
  const { post } = poster({ lookup: async () => answer })
  expect(fault(await post({ url: `https://x.example.com:${listener.port}/` }))).toBe('guarded')
  expect(listener.connections()).toBe(0)
})

const unknown: Lookup = async () => Promise.reject(new Error('queryA ENOTFOUND x.example.com'))

test('without TLS nothing but the own machine is called, whoever answers for its name', async () => {
  const listener = await everywhere()
  for (const allowLoopback of [true, false]) {
    const { agent } = poster({ lookup: toUs, allowLoopback })
    const calling = request(`http://hook.example.com:${listener.port}/`, { dispatcher: agent })
    await expect(calling).rejects.toThrow('The destination is not allowed.')
  }
  expect(listener.connections()).toBe(0)
})

test('who resets a connection at once is not taken for a forbidden address', async () => {
  const server = createServer((socket) => void socket.resetAndDestroy())
  const port = await listening(server, '127.0.0.1')
  const { post } = poster({ allowLoopback: true })
  const ends = await Promise.all(Array.from({ length: 100 }, async () => post({ url: `http://127.0.0.1:${port}/` })))
  expect(ends.filter((end) => end.kind !== 'failed' || !['connect', 'cut-off'].includes(end.why))).toEqual([])
})

test('a name without an address, and one that cannot be looked up', async () => {
  expect(fault(await poster({ lookup: async () => [] }).post({ url: 'https://x.example.com/' }))).toBe('dns')
  const end = await poster({ lookup: unknown }).post({ url: 'https://x.example.com/' })
  expect(end).toMatchObject({ kind: 'failed', why: 'dns', error: expect.stringContaining('ENOTFOUND') as string })
})

test('a name server that is silent costs the time of one connection', async () => {
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

test('a deadline that is shorter than that counts while there is no connection yet, and nothing is sent after it', async () => {
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

test('a certificate for another name, or of nobody, is no connection', async () => {
  const { port } = await tlsEcho()
  const trusting = poster({ lookup: toUs, allowLoopback: true, ca: CERTIFICATE })
  expect(fault(await trusting.post({ url: `https://other.example.com:${port}/` }))).toBe('tls')
  expect(fault(await trusting.post({ url: `https://127.0.0.1:${port}/` }))).toBe('answered 200')
  const usual = poster({ lookup: toUs, allowLoopback: true })
  expect(fault(await usual.post({ url: `https://hook.example.com:${port}/` }))).toBe('tls')
})

test('a handshake that stalls costs the time of one connection, and the socket is not kept', async () => {
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

test('a way out that is closed waits for nothing that is being connected', async () => {
  const came = Promise.withResolvers<Socket>()
  const port = await listening(
    createServer((socket) => came.resolve(socket.resume())),
    '127.0.0.1',
  )
  // Time stands still: nothing else ends it.
  const { post, agent } = poster({ clock: new VirtualClock(), allowLoopback: true })
  const posting = post({ url: `https://127.0.0.1:${port}/` })
  const closed = closing(await came.promise)
  await agent.destroy()
  expect(await posting).toMatchObject({ kind: 'failed' })
  await closed
})

test('nobody listens there', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  server.close()
  await once(server, 'close')
  expect(fault(await poster({ allowLoopback: true }).post({ url: `http://127.0.0.1:${port}/` }))).toBe('connect')
})

test('a proxy that the environment names is not used', async () => {
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
