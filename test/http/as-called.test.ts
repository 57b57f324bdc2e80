// Tests requests as proxies, balancers and libraries write them: addresses, schemes, targets, headers.
import { createHmac } from 'node:crypto'
import dns from 'node:dns'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ListenOptions } from '../../src/http/server.ts'
import type { ReceivedRequest, Source } from '../../src/receive/source.ts'
import { bearer } from '../../src/sources/credentials.ts'
import { garmin } from '../../src/sources/garmin.ts'
import { twilio } from '../../src/sources/twilio.ts'
import { eventsIn } from '../receive/scene.ts'
import { listening, served, Wire } from './rig.ts'

const BEHIND: ListenOptions = { trustProxy: ['127.0.0.1', '10.0.0.0/8'] }

function probe(seen: ReceivedRequest[]): Source {
  return { scheme: 'probe', secrets: ['s'], verify: (request) => void seen.push(request), events: () => [] }
}

async function addressOf(forwarded: string): Promise<string | undefined> {
  const seen: ReceivedRequest[] = []
  const { url } = await listening(BEHIND, (app) => app.source('probe', probe(seen)))
  await fetch(`${url}/in/probe`, { method: 'POST', headers: { 'x-forwarded-for': forwarded } })
  return seen[0]?.address
}

describe('a forwarded address', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['203.0.113.7:4711, 10.0.0.2:555', '203.0.113.7'],
    ['203.0.113.7:4711, 198.51.100.1:555', '198.51.100.1'],
  ])('%s is %s', async (forwarded, address) => {
    expect(await addressOf(forwarded)).toBe(address)
  })

  it('with varying ports is one address for rates and lists', async () => {
    const declare = { addressRate: { rate: 2, per: '1m' } } as const
    const sources = { clientId: 'c', addresses: ['203.0.113.0/24'] }
    const { url } = await listening(BEHIND, (app) => app.source('garmin', garmin(sources)), declare)
    const send = async (port: number): Promise<number> => {
      const headers = { 'garmin-client-id': 'c', 'x-forwarded-for': `203.0.113.7:${port}` }
      return (await fetch(`${url}/in/garmin`, { method: 'POST', headers, body: '{"dailies":[]}' })).status
    }
    expect([await send(1), await send(2), await send(3)]).toEqual([200, 200, 429])
  })
})

it('a forwarded scheme may be in capitals', async () => {
  const seen: ReceivedRequest[] = []
  const { url } = await listening(BEHIND, (app) => app.source('probe', probe(seen)))
  const headers = { 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'Hooks.example.com' }
  await fetch(`${url}/in/probe?a='`, { method: 'POST', headers })
  expect(seen[0]?.url.href).toBe('https://hooks.example.com/in/probe?a=%27')
})

describe('a target', () => {
  it('that is an absolute URL means its path', async () => {
    const seen: ReceivedRequest[] = []
    const { port } = await listening({}, (app) => app.source('probe', probe(seen)))
    for (const target of ['http://x/in/probe?a=1', 'HTTPS://other/in/probe?a=1', '/in/probe?a=1']) {
      const wire = new Wire(port).write(`POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`)
      await wire.answers()
      expect([target, wire.status]).toEqual([target, 202])
    }
    expect(new Set(seen.map(({ url }) => url.href))).toEqual(new Set(['http://x/in/probe?a=1']))
  })

  it.each(['*', 'x', 'http://x', 'http://x?/in/probe', 'ftp://x/in/probe'])('%s leads to no source', async (target) => {
    const { port } = await listening({}, (app) => app.source('probe', probe([])))
    const wire = new Wire(port).write(`OPTIONS ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    await wire.closed
    expect([400, 404]).toContain(wire.status)
  })

  it('is not changed by a host that contains a path, not even partly', async () => {
    const seen: ReceivedRequest[] = []
    const { port } = await listening({}, (app) => app.source('probe', probe(seen)))
    for (const host of ['x/in/other?y=', 'x#', 'u@x', 'x?']) {
      await new Wire(port).write(`POST /in/probe HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n\r\n`).answers()
    }
    expect(seen.map(({ calledUrl: called }) => called)).toEqual(Array(4).fill('http://x/in/probe'))
  })

  it.each(["?a='x&t=10:30", '?a="b"', '?', '?x=%zz'])(
    'with %s has exactly the URL that Twilio signed',
    async (query) => {
      const { port } = await listening({}, (app) => app.source('twilio', twilio({ secret: 'token' })))
      const [body, address] = ['CallSid=CA1', `http://Hooks.test:${port}/in/twilio${query}`]
      const mac = createHmac('sha1', 'token').update(`${address}CallSidCA1`).digest('base64')
      const headers = `content-type: application/x-www-form-urlencoded\r\nx-twilio-signature: ${mac}`
      const head = `POST /in/twilio${query} HTTP/1.1\r\nhost: Hooks.test:${port}\r\n${headers}\r\ncontent-length: 11`
      const wire = new Wire(port).write(`${head}\r\n\r\n${body}`)
      await wire.answers()
      expect(wire.status).toBe(200)
    },
  )
})

it('with two authorization headers a request is rejected, whichever comes first', async () => {
  const { port, store } = await listening({}, (app) => app.source('b', bearer({ secret: 'right' })))
  for (const [one, other, status] of [
    ['right', 'wrong', 401],
    ['wrong', 'right', 401],
    ['right', undefined, 202],
  ] as const) {
    const lines = [one, other].filter((token) => token !== undefined).map((token) => `authorization: Bearer ${token}`)
    const head = ['POST /in/b HTTP/1.1', 'host: x', ...lines, 'content-length: 2'].join('\r\n')
    const wire = new Wire(port).write(`${head}\r\n\r\n{}`)
    await wire.answers()
    expect(wire.status).toBe(status)
  }
  expect(await eventsIn(store)).toHaveLength(1)
})

it('health can be asked by HEAD', async () => {
  const { url, app } = await listening()
  for (const path of ['/healthz', '/readyz']) {
    const response = await fetch(`${url}${path}`, { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect((await app.fetch(new Request(`http://x${path}`, { method: 'HEAD' }))).status).toBe(200)
  }
})

/** On most machines `localhost` has two addresses; here the second one works without IPv6. */
function addresses(name: string): readonly string[] {
  return name === 'localhost' ? ['127.0.0.1', '127.0.0.2'] : [name]
}

type Tell = (error: null, addresses: readonly object[]) => void

function told(name: string, _options: object, tell: Tell): void {
  tell(
    null,
    addresses(name).map((address) => ({ address, family: 4 })),
  )
}

/** Whether a server accepted the connection. */
function connected(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => resolve((socket.destroy(), true)))
    socket.once('error', () => resolve(false))
  })
}

it('localhost is one server with one set of bounds, even if it has two addresses', async () => {
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(told as never)
  onTestFinished(() => lookup.mockRestore())
  const { url, port, connections } = await listening({ host: 'localhost', connectionsPerAddress: 1 })
  expect(url).toBe(`http://127.0.0.1:${port}`)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(connections().open).toBe(1)
  expect(await connected('127.0.0.2', port)).toBe(false)
})

/** Returns 0 if the connection was closed. */
async function ask(wire: Wire): Promise<number> {
  await wire.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n').answers()
  return wire.status
}

it('the maximum number of connections counts over all addresses', async () => {
  const bounds = { headersTimeout: 10_000, requestTimeout: 10_000, keepAliveTimeout: 10_000, checkInterval: 1_000 }
  const { port } = await served({ bounds: { ...bounds, maxConnections: 2 } })
  // Both connections have a request in progress; an idle one would be closed.
  const begun = 'POST /in/github HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n'
  const one = new Wire(port).write(begun)
  await one.answers()
  const two = new Wire(port).write(begun)
  await two.answers()
  expect(await ask(new Wire(port))).toBe(0)
  two.write('{"a":"b"}')
  one.socket.destroy()
  await one.closed
  let last = 0
  while (last === 0) last = await ask(new Wire(port))
  expect(last).toBe(200)
})
