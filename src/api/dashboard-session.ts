// `DashboardSession` is who uses the dashboard: it answers `v1/session` below the mount, and signs people in and out. The
// cookie is invisible to scripts, and goes only to the API below the mount through which it was set.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Admin } from '../admin/admin.ts'
import type { Sessions } from '../admin/sessions.ts'
import { SluiceError } from '../errors.ts'
import type { ConnectionInfo } from '../http/admin-api.ts'
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'
import { readSessionCookie, SESSION_COOKIE, type Access, type Identity } from './access.ts'
import { readInput } from './input.ts'
import { jsonResponse, MethodNotAllowedError } from './responses.ts'

export interface DashboardSessionDependencies {
  readonly access: Access
  readonly sessions: Sessions
  readonly admin: Pick<Admin, 'events'>
  readonly storeKind: () => string
}

export const SESSION_PATH = '/v1/session'

const SIGN_IN = { body: z.strictObject({ key: z.string().min(1).max(1_000) }) }

export class DashboardSession {
  readonly #deps: DashboardSessionDependencies

  constructor(deps: DashboardSessionDependencies) {
    this.#deps = deps
  }

  /** `handle` throws what `Api` turns into a problem response. */
  async handle(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse> {
    const { access } = this.#deps
    if (head.method === 'GET') return this.#describe(await access.identify(head, connection))
    if (head.method === 'POST') return this.#signIn(head, connection, read)
    if (head.method === 'DELETE') return this.#signOut(head)
    throw new MethodNotAllowedError(['GET', 'POST', 'DELETE'])
  }

  async #signIn(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse> {
    const { access, sessions } = this.#deps
    if (connection.dashboard?.user !== undefined) {
      throw new SluiceError('REQUEST_INVALID', 'The host app signs people in; this dashboard takes no keys.')
    }
    access.assertFromPage(head)
    access.countSignIn(head)
    const { key: secret } = (await readInput(SIGN_IN, head, read)) as z.output<typeof SIGN_IN.body>
    const { token, key, until } = await sessions.open(await access.authenticateKey(head, secret))
    const { headers, ...answer } = await this.#describe({ ...key, by: 'cookie', until, actor: key.name })
    const lasts = await this.#secondsUntil(until)
    return { ...answer, headers: { ...headers, 'set-cookie': toCookie(head, token, lasts) } }
  }

  async #signOut(head: RequestHead): Promise<SourceResponse> {
    this.#deps.access.assertFromPage(head)
    const token = readSessionCookie(head)
    if (token !== undefined) await this.#deps.sessions.end(token)
    const { headers, ...answer } = jsonResponse(200, { result: 'ok' })
    return { ...answer, headers: { ...headers, 'set-cookie': toCookie(head, '', 0) } }
  }

  async #describe({ name, role, by, until }: Identity): Promise<SourceResponse> {
    const { durable, bytes } = await this.#deps.admin.events.safety()
    const app = { version: VERSION, store: this.#deps.storeKind(), bytes, durable }
    return jsonResponse(200, {
      name,
      role,
      by,
      ...(until !== undefined && { until }),
      canSignOut: by === 'cookie',
      app,
    })
  }

  /** The browser counts from now, so a wrong clock of the machine does not matter. */
  async #secondsUntil(until: number): Promise<number> {
    return Math.max(1, Math.floor((until - (await this.#deps.admin.events.safety()).now) / 1_000))
  }
}

/**
 * Without `Path`, a cookie belongs to the folder of the address that set it, here `<mount>/v1`. So the server need not know
 * the mount that the browser sees behind a proxy.
 */
function toCookie({ headers, url }: RequestHead, token: string, maxAge: number): string {
  // Behind a proxy that ends TLS, only the page knows that it came by https.
  const isSecure = url.protocol === 'https:' || headers['origin']?.startsWith('https:') === true
  return `${SESSION_COOKIE}=${token}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }
).version
