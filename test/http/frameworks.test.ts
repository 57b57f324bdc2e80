// Tests `app.fetch` inside Express, Hono, a Next.js route handler and plain node:http, with the very snippets of the docs.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Sluice } from '../../src/index.ts'
import { bytesOf, eventsIn, githubHeaders, problemOf, SECRET, textOf } from '../receive/scene.ts'
import { Wire } from './rig.ts'

/** Parsing and serializing this text again gives other bytes. */
const BODY = '{ "text":"é\\u00e9👍" ,\r\n "n":12345678901234567890, "n":1.0 }\n'

const folder = mkdtempSync(join(tmpdir(), 'sluice-frameworks-'))
const STORE = `sqlite:${join(folder, 'a.db')}`
const STORE_OF_NEXT = `sqlite:${join(folder, 'next.db')}`

type Send = (path: string, init: RequestInit) => Promise<Response>

let app: Sluice
let appOfNext: Sluice
const stored: string[] = []
const servers: Server[] = []
const senders: Record<string, Send> = {}
const ports: Record<string, number> = {}

async function over(server: Server, name = ''): Promise<Send> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const at = (server.address() as AddressInfo).port
  ports[name] = at
  return (path, init) => fetch(`http://127.0.0.1:${at}${path}`, init)
}

beforeAll(async () => {
  process.env['SLUICE_STORE'] = STORE
  process.env['GITHUB_SECRET'] = SECRET
  app = (await import('./frameworks/sluice.config.ts')).default
  // Next.js calls this when the server starts. The signal handler is tested with the real server, in a process of its own.
  process.env['SLUICE_STORE'] = STORE_OF_NEXT
  process.env.NEXT_RUNTIME = 'nodejs'
  const stopping = process.listeners('SIGTERM')
  await (await import('./frameworks/next/instrumentation.ts')).register()
  for (const listener of process.listeners('SIGTERM')) {
    if (!stopping.includes(listener)) process.off('SIGTERM', listener)
  }
  appOfNext = (await import('./frameworks/next/sluice.config.ts')).default
  for (const each of [app, appOfNext]) each.on('event.received', ({ event }) => void stored.push(event))
  const [express, hono, next, node] = await Promise.all([
    import('./frameworks/express.ts'),
    import('./frameworks/hono.ts'),
    import('./frameworks/next/app/in/[source]/route.ts'),
    import('./frameworks/node-http.ts'),
  ])
  senders['Express'] = await over(createServer(express.server), 'Express')
  senders['Hono'] = async (path, init) => hono.server.request(`http://localhost${path}`, init)
  senders['Next.js'] = (path, init) => {
    const handlers: Readonly<Record<string, (request: Request) => Promise<Response>>> = next
    const request = new Request(`http://localhost${path}`, init)
    return handlers[request.method]?.(request) ?? Promise.resolve(new Response(null, { status: 405 }))
  }
  senders['node:http'] = await over(node.server, 'node:http')
})

afterAll(async () => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
  await Promise.all([app.stop(), appOfNext.stop()])
  rmSync(folder, { recursive: true, force: true })
})

function hooked(secret: string, delivery: string): RequestInit {
  return { method: 'POST', headers: githubHeaders(BODY, { secret, delivery }), body: bytesOf(BODY) }
}

describe.each(['Express', 'Hono', 'Next.js', 'node:http'])('inside %s', (name) => {
  const send: Send = (path, init) => senders[name]?.(path, init) ?? Promise.reject(new Error(`no ${name}`))

  it('a signed webhook is accepted byte for byte, and its duplicate is recognised', async () => {
    const before = stored.length
    // The signature covers these very bytes: if one changed, this would be 401.
    expect((await send('/in/github', hooked(SECRET, `of ${name}`))).status).toBe(202)
    expect((await send('/in/github', hooked(SECRET, `of ${name}`))).status).toBe(202)
    expect(stored.length).toBe(before + 1)
  })

  it('a forged webhook is rejected, with a complete response', async () => {
    const before = stored.length
    const response = await send('/in/github', hooked('guessed', `forged ${name}`))
    expect(response.status).toBe(401)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
    expect((await problemOf(response)).code).toBe('SIGNATURE_WRONG')
    const { headers } = hooked(SECRET, `changed ${name}`)
    const changed = await send('/in/github', { method: 'POST', headers: headers ?? {}, body: BODY.replace('1.0', '1') })
    expect(changed.status).toBe(401)
    expect(stored.length).toBe(before)
  })

  it('another method and an unknown source get the same responses as from the server', async () => {
    expect((await send('/in/github', { method: 'GET' })).headers.get('allow')).toBe('POST')
    expect((await send('/in/nobody', { method: 'POST', body: 'x' })).status).toBe(404)
  })
})

describe.each(['Express', 'node:http'])('a path that a proxy reads differently, inside %s', (name) => {
  it.each(['/in/..\\openapi.json', '/in/..\\v1\\keys', '/in/..%5Cmetrics\\..\\..\\metrics'])(
    'is rejected: %s',
    async (target) => {
      const wire = new Wire(ports[name] ?? 0)
      await wire.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).answers()
      expect(wire.status).toBe(400)
      expect(wire.text).toContain('"PATH_AMBIGUOUS"')
    },
  )
})

describe('the rest of a server', () => {
  it('works: other routes of Express get their parsed bodies', async () => {
    const headers = { 'content-type': 'application/json' }
    const response = await senders['Express']?.('/orders', { method: 'POST', headers, body: '{"n":1}' })
    expect(await response?.json()).toEqual({ n: 1 })
  })

  it('works: a request that cannot become a web request does not end plain node:http', async () => {
    for (const line of ['TRACE /in/github', 'OPTIONS *', 'GET http://[']) {
      const wire = new Wire(ports['node:http'] ?? 0).write(`${line} HTTP/1.1\r\nhost: [\r\n\r\n`)
      await wire.answers()
      expect([400, 404]).toContain(wire.status)
    }
    expect((await senders['node:http']?.('/in/github', hooked(SECRET, 'after')))?.status).toBe(202)
  })
})

describe('a parser in front', () => {
  it.each([
    ['a body of a length', '{"important":1}'],
    ['a body in chunks', new Blob(['{"important":1}']).stream()],
  ])('that has taken %s has the request refused, not stored without it', async (_, body) => {
    const [{ default: express }, { answerWith, webRequest }] = await Promise.all([
      import('express'),
      import('./frameworks/web-request.ts'),
    ])
    const before = stored.length
    const wrong = express().use(express.json())
    wrong.all('/in/:source', (request, response) => {
      const answered = async (): Promise<void> => answerWith(await app.fetch(webRequest(request)), response)
      answered().catch(() => response.status(400).end())
    })
    const send = await over(createServer(wrong))
    const headers = { ...githubHeaders('{"important":1}'), 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    expect((await send('/in/github', init)).status).toBe(400)
    expect(stored.length).toBe(before)
  })

  it('is detected by app.fetch if the request has a content-length', async () => {
    const headers = { ...githubHeaders(''), 'content-length': '15' }
    const request = new Request('http://localhost/in/github', { method: 'POST', headers, body: '' })
    expect((await problemOf(await app.fetch(request))).code).toBe('BODY_CUT_OFF')
  })
})

describe('the configuration of Next.js', () => {
  it('is one app, however often Next.js loads the file', async () => {
    const again = './frameworks/next/sluice.config.ts?again'
    const { default: second } = (await import(again)) as { readonly default: Sluice }
    expect(second === appOfNext).toBe(true)
  })
})

describe('what was stored', () => {
  it('is byte for byte what was sent', async () => {
    await Promise.all([app.stop(), appOfNext.stop()])
    const bodies: string[] = []
    for (const address of [STORE, STORE_OF_NEXT]) {
      const store = await openStore(address)
      bodies.push(...(await eventsIn(store)).map(({ body }) => textOf(body)))
      await store.close()
    }
    expect(bodies).toEqual(Array.from({ length: 5 }, () => BODY))
  })
})
