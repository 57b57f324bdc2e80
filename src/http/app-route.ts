// An `AppRoute` is a route of the app: a web-standard handler at a path, the same under the server and under `fetch`.
import { SluiceError } from '../errors.ts'
import type { FetchContext } from './web-fetch.ts'

export type RouteHandler = (request: Request, context: FetchContext) => Response | Promise<Response>

export interface AppRoute {
  readonly method: string
  /** An exact path, or a prefix if it ends with an asterisk. */
  readonly path: string
  readonly handle: RouteHandler
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function createAppRoute(method: string, path: string, handle: RouteHandler): AppRoute {
  if (!METHODS.has(method)) refuse(`method must be one of ${[...METHODS].join(', ')}; got ${JSON.stringify(method)}.`)
  if (typeof path !== 'string' || !/^\/[^\s?#*]*\*?$/.test(path)) {
    refuse(`path must begin with /, and may end with * to match a prefix; got ${JSON.stringify(path)}.`)
  }
  if (typeof handle !== 'function') refuse(`the handler of ${method} ${path} must be a function.`)
  return { method, path, handle }
}

function refuse(what: string): never {
  throw new SluiceError('CONFIG_INVALID', `route: ${what}`)
}

export function matchesRoute({ method, path }: AppRoute, requested: string, pathname: string): boolean {
  if (method !== requested) return false
  return path.endsWith('*') ? pathname.startsWith(path.slice(0, -1)) : path === pathname
}
