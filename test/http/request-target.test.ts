// A path that a proxy and this server read differently is rejected, however the app is served.
import { describe, expect, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import type { ListenOptions } from '../../src/http/server.ts'
import { problemOf, withGithub } from '../receive/scene.ts'
import { listening, onTheWire, Wire } from './rig.ts'

/** Each path is below /in/ for a proxy that takes it literally, and elsewhere for a URL parser. */
const ELSEWHERE = [
  '/in/..\\v1/keys',
  '/in/..\\..\\v1\\keys',
  '/in/../v1/keys',
  '/in/./../v1/keys',
  '/in/%2e%2e/v1/keys',
  '/in/.%2E/v1/keys',
  '/in\\github',
  '/in/./github',
  '/in/x#/../../v1/keys',
  '/in/"x"',
  'http://x/in/../v1/keys',
  '/in/..\\v1/keys?x=1',
]
/** Node itself rejects these. */
const NO_TARGETS = ['/in/é', 'http://x\\in/v1/keys']
const PLAIN = ['/in/a%5Cb', '/in/a%2F..%2Fb', '/in/%zz', '/in//x', '/in/a;b=(c)!*', '/in/x?a=\\..\\"#']

function declared(app: Sluice, called: string[]): void {
  withGithub(app).route('POST', '/*', (request) => {
    called.push(request.url)
    return new Response('a page', { status: 299 })
  })
}

async function asked(port: number, target: string): Promise<Wire> {
  const wire = new Wire(port)
  await wire.write(`POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`).answers()
  return wire
}

const SERVERS: readonly (readonly [string, ListenOptions])[] = [
  ['a server', {}],
  ['a server behind a listed proxy', { trustProxy: ['127.0.0.1'] }],
]

describe.each(SERVERS)('%s', (_, options) => {
  it.each(ELSEWHERE)('rejects POST %s, and calls nothing', async (target) => {
    const called: string[] = []
    const { port, app } = await listening(options, (one) => declared(one, called))
    const wire = await asked(port, target)
    expect([wire.status, called]).toEqual([400, []])
    expect(wire.text).toContain('"code":"PATH_AMBIGUOUS"')
    const [refused] = await app.admin.sources.refused('')
    expect(refused).toMatchObject({ code: 'PATH_AMBIGUOUS', method: 'POST', address: '127.0.0.1' })
  })

  it.each(PLAIN)('accepts POST %s unchanged', async (target) => {
    const called: string[] = []
    const { port } = await listening(options, (one) => declared(one, called))
    expect((await asked(port, target)).status).toBe(299)
    expect(called).toHaveLength(1)
  })

  it.each(['/healthz', '/readyz', '/metrics', '/openapi.json', '/v1/keys', '/v1/stream', '/in/github'])(
    'serves %s at no other spelling',
    async (path) => {
      const { port } = await listening(options)
      for (const target of [`/in/..\\..${path}`, `/in/..${path}`, `/x/%2e%2e${path}`]) {
        const wire = new Wire(port)
        await wire.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).answers()
        expect([target, wire.status]).toEqual([target, 400])
        expect(wire.text).toContain('"PATH_AMBIGUOUS"')
      }
    },
  )

  it('keeps the connection open', async () => {
    const { port } = await listening(options)
    const wire = await asked(port, '/in/..\\v1/keys')
    await wire.write(onTheWire('{}')).answers(2)
    expect(wire.status).toBe(202)
  })
})

describe('app.fetch', () => {
  it.each([...ELSEWHERE, ...NO_TARGETS])('rejects the target %s, and calls nothing', async (target) => {
    const called: string[] = []
    const { app } = await listening({}, (one) => declared(one, called))
    const request = new Request(new URL(target, 'http://hooks.test'), { method: 'POST' })
    const response = await app.fetch(request, { target })
    expect(await problemOf(response)).toMatchObject({ status: 400, code: 'PATH_AMBIGUOUS' })
    expect([called, (await app.admin.sources.refused(''))[0]?.code]).toEqual([[], 'PATH_AMBIGUOUS'])
  })

  it.each(PLAIN)('accepts the target %s unchanged', async (target) => {
    const { app } = await listening({}, (one) => declared(one, []))
    const request = new Request(`http://hooks.test${target}`, { method: 'POST' })
    expect((await app.fetch(request, { target })).status).toBe(299)
    expect((await app.fetch(request)).status).toBe(299)
  })

  it("rejects a framework's own kind of request whose path is still as it was sent", async () => {
    const { app } = await listening()
    for (const target of ['/in/..\\v1/keys', '/in/../v1/keys']) {
      const request = new Proxy(new Request('http://hooks.test/v1/keys'), {
        get: (real, name) => (name === 'url' ? `http://hooks.test${target}` : (Reflect.get(real, name) as unknown)),
      })
      expect(await problemOf(await app.fetch(request))).toMatchObject({ status: 400, code: 'PATH_AMBIGUOUS' })
    }
  })
})
