// `Rig` is an app under the virtual clock with its admin API, called like a request. It checks every response against the schema
// of its route: a response that the OpenAPI document does not describe fails the test.
import { onTestFinished } from 'vitest'
import { Api } from '../../src/api/api.ts'
import type { ApiRoute } from '../../src/api/route.ts'
import { ROUTES } from '../../src/api/routes/index.ts'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'

export const STORES = ['memory:', 'sqlite::memory:'] as const
export const START = Date.UTC(2026, 0, 1)

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: never
}

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly address?: string
  readonly isDirect?: boolean
  readonly key?: string
}

export interface Rig {
  readonly t: TestApp
  readonly app: Sluice
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  get(path: string, options?: CallOptions): Promise<Answer>
  post(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
}

export async function rig(
  store: string,
  declare: (app: Sluice) => unknown,
  options: Partial<SluiceOptions> = {},
): Promise<Rig> {
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  declare(app)
  const t = await testApp(app, { store, now: START })
  onTestFinished(() => t.stop())
  const clock = { now: () => START + t.elapsed, monotonic: () => t.elapsed, after: () => () => {} }
  const api = new Api(app, {
    keys: app.admin.keys,
    isOpen: true,
    store: () => Promise.reject(new Error('no stream here')),
    clock,
  })
  const call: Rig['call'] = async (method, path, asked = {}) => {
    const { body, key, address = '127.0.0.1', isDirect = true } = asked
    const json = body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    const headers = {
      host: 'localhost:8787',
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...asked.headers,
    }
    const head = { method, url: new URL(path, 'http://localhost:8787'), headers, address }
    const answer = await api.handle(head, { isDirect }, async () => json ?? new Uint8Array())
    const given = JSON.parse(answer.body ?? 'null') as never
    if (answer.status < 300) holdAgainst(method, head.url.pathname, given)
    return { status: answer.status, headers: answer.headers ?? {}, body: given }
  }
  return {
    t,
    app,
    call,
    get: (path, asked) => call('GET', path, asked),
    post: (path, body = {}, asked = {}) => call('POST', path, { body, ...asked }),
  }
}

function holdAgainst(method: string, pathname: string, body: unknown): void {
  const found = routeOf(method, pathname)
  if (found === undefined) return
  const result = found.response.safeParse(body)
  if (!result.success)
    throw new Error(`${method} ${pathname} answers what it does not declare: ${result.error.message}`)
}

function routeOf(method: string, pathname: string): ApiRoute | undefined {
  return ROUTES.find((route) => {
    const pattern = new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    return route.method === method && pattern.test(pathname)
  })
}
