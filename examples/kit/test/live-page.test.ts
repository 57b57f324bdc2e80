// The live page of an example: it follows the state, executes commands, and reveals nothing else.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveHandler, type Served } from '../http.ts'
import { livePage } from '../live-page.ts'

const state = { knocks: 0 }
let page: Served

const knock = (body: unknown): unknown => ({ knocks: (state.knocks += Number(body)) })

beforeAll(async () => {
  const folder = new URL('../../hello/page/', import.meta.url)
  page = await serveHandler(livePage({ folder, state: () => state, actions: { knock } }))
})

afterAll(() => page.close())

describe('the live page', () => {
  it.each([
    ['/', 'text/html; charset=utf-8'],
    ['/page.js', 'text/javascript; charset=utf-8'],
    ['/page.css', 'text/css; charset=utf-8'],
  ])('%s is served as %s, under a policy that allows nothing inline', async (path, type) => {
    const response = await fetch(page.url + path)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(response.headers.get('content-security-policy')).toMatch(
      /default-src 'none'; script-src 'self'; (?!.*unsafe)/,
    )
    expect(await response.text()).not.toMatch(/<script>|\son\w+=|style=/)
  })

  it.each(['/..%2fexample.ts', '/%2e%2e/example.ts', '/missing.js', '/page.js/x', '/do/knock'])(
    'GET %s is 404',
    async (path) => {
      expect((await fetch(page.url + path)).status).toBe(404)
    },
  )

  it('sends the state at once, and again each time it has changed', async () => {
    const stop = new AbortController()
    const { body } = await fetch(`${page.url}/state`, { signal: stop.signal })
    const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    const first = state.knocks
    expect((await reader.read()).value).toBe(`data: {"knocks":${first}}\n\n`)
    const response = await fetch(`${page.url}/do/knock`, { method: 'POST', body: '2' })
    expect(await response.json()).toEqual({ knocks: first + 2 })
    expect((await reader.read()).value).toBe(`data: {"knocks":${first + 2}}\n\n`)
    stop.abort()
  })

  it('takes no orders from another page, and no unknown ones', async () => {
    const before = state.knocks
    const press = async (path: string, origin: string): Promise<number> =>
      (await fetch(page.url + path, { method: 'POST', body: '1', headers: { origin } })).status
    expect(await press('/do/knock', 'https://elsewhere.example')).toBe(403)
    expect(await press('/do/knock', 'null')).toBe(403)
    expect(await press('/do/constructor', page.url)).toBe(404)
    expect(state.knocks).toBe(before)
    expect(await press('/do/knock', page.url)).toBe(200)
  })
})
