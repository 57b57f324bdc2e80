// `Dashboard` serves everything below one mount: the files of the page, and the admin API for that page at `v1/`.
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { assertKnownOptions, invalidOption, isObject } from '../validate/options.ts'
import { DashboardFiles } from './dashboard-files.ts'
import { isStreamRequest, type AdminApi, type ConnectionInfo, type DashboardUser } from './admin-api.ts'
import { toWebResponse, type FetchContext } from './web-fetch.ts'

/** `DashboardContext` says how a host app has mounted `app.dashboard`. */
export interface DashboardContext extends FetchContext {
  /** The path of the mount, e.g. `/admin/webhooks`. The default is `/dashboard`. */
  readonly mount?: string
  /** The person whom the host has signed in. Without it, people sign in with an API key. */
  readonly user?: DashboardUser
}

export const DASHBOARD_MOUNT = '/dashboard'

const CONTEXT: ReadonlySet<string> = new Set<keyof DashboardContext>(['mount', 'user', 'address', 'target'])
const MOUNT = /^(?:\/[\w.~%@-]+)*$/
const USER_NAME = /^[^\p{Cc}]{1,100}$/u

/** `DashboardRequest` is a request with its path below the mount; undefined is the mount without the slash at its end. */
export interface DashboardRequest {
  readonly path: string | undefined
  readonly head: RequestHead
  readonly connection: ConnectionInfo
  readonly read: ReadBody
  readonly user?: DashboardUser
}

export class Dashboard {
  readonly #api: () => Promise<AdminApi>
  readonly #files = new DashboardFiles()

  constructor(api: () => Promise<AdminApi>) {
    this.#api = api
  }

  async respond({ path, head, connection, read, user }: DashboardRequest): Promise<Response> {
    if (path === undefined) return redirectTo(head.url.pathname)
    if (!path.startsWith('v1/')) return this.#files.respond(head.method, path, head.headers)
    const url = new URL(head.url)
    url.pathname = `/${path}`
    const below = { ...head, url }
    const from = { ...connection, dashboard: user === undefined ? {} : { user } }
    const api = await this.#api()
    return isStreamRequest(below) ? api.stream(below, from) : toWebResponse(await api.handle(below, from, read))
  }
}

/** The address is relative, so that it survives a prefix that a proxy adds. `/` leads to the default mount. */
function redirectTo(pathname: string): Response {
  const name = pathname === '/' ? DASHBOARD_MOUNT.slice(1) : pathname.slice(pathname.lastIndexOf('/') + 1)
  return new Response(null, { status: 307, headers: { location: `${name}/`, 'cache-control': 'no-store' } })
}

/** `isBelowMount` returns whether the path is the mount's own or below it. */
export function isBelowMount(mount: string, pathname: string): boolean {
  return pathname === mount || pathname.startsWith(`${mount}/`)
}

/** `findPathBelow` returns the path below the mount without its first slash; undefined for the mount itself. */
export function findPathBelow(mount: string, pathname: string): string | undefined {
  return pathname.length > mount.length ? pathname.slice(mount.length + 1) : undefined
}

/** `parseDashboardContext` checks what a host app passes with each request. */
export function parseDashboardContext(
  context: DashboardContext,
  pathname: string,
): { readonly mount: string; readonly user?: DashboardUser } {
  assertKnownOptions(context, CONTEXT, 'dashboard: ')
  const { user } = context
  const mount = (context.mount ?? DASHBOARD_MOUNT).replace(/\/$/, '')
  if (!MOUNT.test(mount))
    throw invalidOption(
      `dashboard: mount must be a path, e.g. '/admin/webhooks'; got ${JSON.stringify(context.mount)}.`,
    )
  if (!isBelowMount(mount, pathname)) {
    throw invalidOption(
      `dashboard: mount must be where the path of the request begins; got ${JSON.stringify(context.mount ?? mount)} and the path ${JSON.stringify(pathname.slice(0, 200))}. Pass the original URL of the request, and the path at which the dashboard is mounted.`,
    )
  }
  if (user === undefined) return { mount }
  if (!isObject(user) || typeof user.name !== 'string' || !USER_NAME.test(user.name) || !user.name.isWellFormed()) {
    throw invalidOption('dashboard: user.name must be text of 1 to 100 characters.')
  }
  if (user.role !== 'read' && user.role !== 'operate') {
    throw invalidOption(`dashboard: user.role must be 'read' or 'operate'; got ${JSON.stringify(user.role)}.`)
  }
  return { mount, user }
}
