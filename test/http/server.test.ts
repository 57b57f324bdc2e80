// R4 on a real socket: slow, massive or malformed input is bounded, and other clients get their responses meanwhile.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ServerBounds } from '../../src/http/server.ts'
import type { Sluice } from '../../src/index.ts'
import { eventsIn, githubHeaders, textOf, withGithub, type ProblemBody } from '../receive/scene.ts'
import { hook, impatient, listening, onTheWire, served, SHORT, Wire } from './rig.ts'

const MEGABYTE = 1024 * 1024
const HOUR = 3_600_000

function problemIn(text: string): ProblemBody {
  return JSON.parse(text.slice(text.lastIndexOf('\r\n\r\n'))) as ProblemBody
}

describe('a slow sender', () => {
  it('of headers gets a 408 and is disconnected in time', async () => {
    const { port, url, refused } = await impatient()
    const wire = new Wire(port).write('POST /in/github HTTP/1.1\r\nhost: x\r\n').drip('x: y\r\n', 30)
    expect((await hook(url, '{}')).status).toBe(202)
    const took = await wire.closed
    expect(took).toBeGreaterThanOrEqual(SHORT.headersTimeout - 50)
    expect(wire.status).toBe(408)
    expect(wire.text).toContain('application/problem+json')
    expect(problemIn(wire.text)).toMatchObject({ status: 408, code: 'REQUEST_TOO_SLOW' })
    expect(refused.list('')).toMatchObject([{ code: 'REQUEST_TOO_SLOW', address: '127.0.0.1' }])
  })

  it('of a body is disconnected in time, and nothing of it is stored', async () => {
    const { port, store, refused } = await impatient()
    const whole = onTheWire('{}'.padEnd(1_000))
    const wire = new Wire(port).write(whole.subarray(0, -900)).drip(' ', 30)
    const took = await wire.closed
    expect(took).toBeGreaterThanOrEqual(SHORT.requestTimeout - 50)
    expect(await eventsIn(store)).toEqual([])
    expect(refused.list('github')).toMatchObject([{ code: 'REQUEST_TOO_SLOW' }])
    expect(refused.list('')).toEqual([])
  })

  it('that continues after its rejection is disconnected in time', async () => {
    const { port } = await impatient()
    const head = `POST /in/github HTTP/1.1\r\nhost: x\r\ncontent-length: ${50 * MEGABYTE}\r\n\r\n`
    const wire = new Wire(port).write(head).drip('x'.repeat(1_000), 10)
    await wire.answers()
    expect(wire.status).toBe(413)
    await wire.closed
  })

  it('that sends nothing at all is disconnected in time, before its first request and after it', async () => {
    const { port, refused } = await impatient()
    const silent = new Wire(port)
    const kept = new Wire(port).write(onTheWire('{}'))
    await kept.answers()
    expect(kept.status).toBe(202)
    await Promise.all([silent.closed, kept.closed])
    expect(refused.list('')).toEqual([])
  })

  it('that disconnects in the middle leaves nothing in memory', async () => {
    const { port, store, refused, url } = await impatient()
    const wire = new Wire(port).write(onTheWire('{}'.padEnd(1_000)).subarray(0, -900))
    await once(wire.socket, 'connect')
    wire.socket.end()
    await wire.closed
    expect((await hook(url, '{}')).status).toBe(202)
    expect(await eventsIn(store)).toHaveLength(1)
    expect(refused.list('github').map(({ code }) => code)).toEqual(['BODY_CUT_OFF'])
  })
})

/** Each connection takes two file descriptors, because both of its ends are in this process. */
function connectionsAllowed(most: number): number {
  const files = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }))
  return Number.isNaN(files) ? most : Math.min(most, Math.floor((files - 200) / 2))
}

describe('connections in masses', () => {
  it('5,000 idle ones do not keep others from getting responses', async () => {
    // All of them are from one address, which has at most 1,000 connections by default.
    const bounds: ServerBounds = {
      headersTimeout: HOUR,
      requestTimeout: HOUR,
      keepAliveTimeout: HOUR,
      checkInterval: 20,
      maxConnections: 10_000,
    }
    const { url, port, store } = await served({ listen: { connectionsPerAddress: Infinity }, bounds })
    const wanted = connectionsAllowed(5_000)
    const idle: Socket[] = []
    onTestFinished(() => {
      for (const socket of idle) socket.destroy()
    })
    let closed = 0
    while (idle.length < wanted) {
      const some = Array.from({ length: Math.min(250, wanted - idle.length) }, () => connect(port, '127.0.0.1'))
      for (const socket of some) socket.on('error', () => {}).on('close', () => closed++)
      await Promise.all(some.map((socket) => once(socket, 'connect')))
      // Some have sent something, others nothing.
      for (const [n, socket] of some.entries()) if (n % 2 === 0) socket.write('POST /in/github HTTP/1.1\r\n')
      idle.push(...some)
    }
    for (let n = 0; n < 50; n++) {
      expect((await hook(url, '{}', { delivery: `d${n}` })).status).toBe(202)
    }
    expect(closed).toBe(0)
    expect(await eventsIn(store)).toHaveLength(50)
  })
})

describe('a body', () => {
  it('of a rejected request is not read as the next request', async () => {
    const { port, store } = await listening()
    const smuggled = onTheWire('{}', { delivery: 'smuggled' })
    const head = `POST /in/nobody HTTP/1.1\r\nhost: x\r\ncontent-length: ${smuggled.length}\r\n\r\n`
    const wire = new Wire(port)
      .write(head)
      .write(smuggled)
      .write(onTheWire('{}', { delivery: 'second' }))
    const text = await wire.answers(2)
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['404', '202'])
    const kept = (await eventsIn(store)).map(({ request }) => textOf(request))
    expect(kept.join()).not.toContain('smuggled')
    expect(kept).toHaveLength(1)
  })

  it('of JSON with a depth of 100,000 is rejected at once, although it is signed', async () => {
    const { url } = await listening()
    for (const deep of ['['.repeat(100_000), `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`]) {
      const response = await hook(url, deep)
      expect([response.status, ((await response.json()) as ProblemBody).code]).toEqual([400, 'BODY_NOT_UNDERSTOOD'])
    }
  })

  it('with __proto__ in it changes no prototype, and is stored byte for byte', async () => {
    const { url, store } = await listening()
    const body = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"action":"x"}'
    expect((await hook(url, body)).status).toBe(202)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect((await eventsIn(store)).map((event) => [event.type, textOf(event.body)])).toEqual([['push.x', body]])
  })
})

/** A source whose handshake writes the request's input into a header. */
function echoing(app: Sluice): Sluice {
  return app.source('own', {
    scheme: 'own',
    secrets: ['it has one'],
    verify: () => undefined,
    events: () => [],
    handshake: {
      verified: false,
      answer: ({ method, url }) =>
        method === 'GET'
          ? { kind: 'answer', answer: { status: 200, headers: { echo: url.searchParams.get('c') ?? '' } } }
          : undefined,
    },
  })
}

describe('a response that cannot be sent', () => {
  it('fails its own request, and not the process', async () => {
    const { url } = await listening({}, (app) => echoing(withGithub(app)))
    const warned = once(process, 'warning')
    expect((await fetch(`${url}/in/own?c=hi`)).headers.get('echo')).toBe('hi')
    const failed = await fetch(`${url}/in/own?c=a%0D%0Ab`)
    expect([failed.status, await failed.json()]).toMatchObject([500, { code: 'ROUTE_FAILED' }])
    expect(String(await warned)).toContain('Invalid character in header content')
    expect((await hook(url, '{}')).status).toBe(202)
  })
})

const padded = (bytes: number): string => `POST /in/github HTTP/1.1\r\nhost: x\r\nbig: ${'x'.repeat(bytes)}\r\n\r\n`

describe('headers', () => {
  it('that are too long get a 431', async () => {
    const { port, app } = await listening()
    const told: string[] = []
    app.on('event.refused', ({ source, field }) => told.push(`${source}:${field}`))
    const wire = new Wire(port).write(padded(20_000))
    await wire.closed
    expect(wire.status).toBe(431)
    expect(problemIn(wire.text)).toMatchObject({ status: 431, code: 'HEADERS_TOO_LARGE' })
    // Behind a proxy that adds long headers, every webhook would be lost without a trace.
    expect(told).toEqual([':HEADERS_TOO_LARGE'])
    expect(await app.admin.sources.refused('')).toMatchObject([
      { code: 'HEADERS_TOO_LARGE', address: '127.0.0.1', path: '' },
    ])
  })

  it('of 64 KB are not read to their end', async () => {
    const { port, url, app } = await listening()
    const wire = new Wire(port).write(padded(65_536))
    await wire.closed
    // A client that still sends when it is disconnected may never read the response.
    expect([0, 431]).toContain(wire.status)
    expect(await app.admin.sources.refused('github')).toEqual([])
    expect((await hook(url, '{}')).status).toBe(202)
  })

  it('that appear twice are rejected', async () => {
    const { port, store } = await listening()
    const whole = onTheWire('{}').toString()
    const twice = whole.replace(/^x-hub-signature-256.*$/m, (line) => `${line}\r\n${line}`)
    const wire = new Wire(port).write(twice)
    await wire.answers()
    expect(wire.status).toBe(401)
    expect(await eventsIn(store)).toEqual([])
  })

  it.each(['GET', 'HEAD', 'PUT', 'OPTIONS', 'PROPFIND', 'QUERY', 'TRACE'])('of %s get a response', async (method) => {
    const { port } = await listening()
    const wire = new Wire(port).write(`${method} /in/github HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`)
    await wire.answers()
    expect(wire.status).toBe(405)
  })

  it.each(['no http at all\r\n\r\n', '\x16\x03\x01\x02\x00\x01', 'GET / HTTP/1.1\r\nhost: a\r\nhost\r\n\r\n'])(
    'that are invalid, like %j, get a 400',
    async (nonsense) => {
      const { port, url, app } = await listening()
      const wire = new Wire(port).write(nonsense)
      await wire.closed
      expect(wire.status).toBe(400)
      expect(problemIn(wire.text).code).toBe('REQUEST_BROKEN')
      expect(await app.admin.sources.refused('')).toMatchObject([{ code: 'REQUEST_BROKEN', address: '127.0.0.1' }])
      expect((await hook(url, '{}')).status).toBe(202)
    },
  )

  it.each(['application', ';;;', 'text/plain; charset=none', ''])(
    'with the content type %j are left to the source',
    async (type) => {
      const { url } = await listening()
      const response = await fetch(`${url}/in/github`, {
        method: 'POST',
        headers: { ...githubHeaders('{}'), 'content-type': type },
        body: '{}',
      })
      expect(response.status).toBe(202)
    },
  )
})
