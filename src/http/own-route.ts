// A route of the app's own: a web-standard handler at a path, the same under the server and under `fetch`.
import { SluiceError } from '../errors.ts'
import type { FetchContext } from './web-fetch.ts'

export type RouteHandler = (request: Request, context: FetchContext) => Response | Promise<Response>

export interface OwnRoute {
  readonly method: string
  /** Exact, or the beginning of one when it ends with an asterisk. */
  readonly path: string
  readonly handle: RouteHandler
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function ownRoute(method: string, path: string, handle: RouteHandler): OwnRoute {
  if (!METHODS.has(method)) refuse(`method is ${JSON.stringify(method)}; there are ${[...METHODS].join(', ')}.`)
  if (typeof path !== 'string' || !/^\/[^\s?#*]*\*?$/.test(path)) {
    refuse(`path is ${JSON.stringify(path)}; it begins with /, and may end with * for all below.`)
  }
  if (typeof handle !== 'function') refuse(`${method} ${path} has no function to call.`)
  return { method, path, handle }
}

function refuse(what: string): never {
  throw new SluiceError('CONFIG_INVALID', `route: ${what}`)
}

export function matches({ method, path }: OwnRoute, asked: string, pathname: string): boolean {
  if (method !== asked) return false
  return path.endsWith('*') ? pathname.startsWith(path.slice(0, -1)) : path === pathname
}
