// An `AppRoute` is a route of the app: a web-standard handler at a path, the same under the server and under `fetch`.
import { DEFAULTS } from '../defaults.ts'
import { SluiceError } from '../errors.ts'
import { RESERVED_PATHS } from '../receive/source-options.ts'
import type { Problem } from '../receive/problem.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { FetchContext } from './web-fetch.ts'

/** `PathParams` is an object with the parameters of a path: `/alerts/:id` has `id`. */
type PathParams<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? { readonly [Key in Name]: string } & PathParams<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? { readonly [Key in Name]: string }
    : unknown

export interface RouteContext<Path extends string = string> extends FetchContext {
  readonly params: PathParams<Path>
  /** The name of the caller's API key, for a route with a `role`. */
  readonly caller?: string
}

export type RouteHandler<Path extends string = string> = (
  request: Request,
  context: RouteContext<Path>,
) => Response | Promise<Response>

export interface RouteOptions {
  /** The role that the caller's API key must have. The default is no check: the route is open to everyone. */
  readonly role?: RouteRole
  /** The maximum length of the body, in bytes. A longer one gets 413. The default is 1 MB. */
  readonly maxBody?: number
}

export type RouteRole = 'read' | 'operate'

export interface AppRoute extends Required<Pick<RouteOptions, 'maxBody'>> {
  readonly method: string
  readonly path: string
  readonly role: RouteRole | undefined
  readonly handle: RouteHandler
  /** Returns the decoded parameters, or undefined if the path is not the route's. */
  readonly match: (pathname: string) => Readonly<Record<string, string>> | undefined
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const ROLES: ReadonlySet<unknown> = new Set<RouteRole>(['read', 'operate'])
const OPTIONS: ReadonlySet<string> = new Set<keyof RouteOptions>(['role', 'maxBody'])

/** Segments are parameters (`:id`) or literal text. A last segment of `*` matches everything below. */
const PATH = /^(?:\/(?::[a-z_]\w*|[^\s?#*:/][^\s?#*/]*)?)+\*?$/i

export function createAppRoute(
  method: string,
  path: string,
  handle: RouteHandler,
  options: RouteOptions = {},
): AppRoute {
  if (!METHODS.has(method)) refuse(`method must be one of ${[...METHODS].join(', ')}; got ${JSON.stringify(method)}.`)
  if (typeof path !== 'string' || !PATH.test(path)) {
    refuse(`path must be like /alerts/:id, and may end with * to match a prefix; got ${JSON.stringify(path)}.`)
  }
  if (RESERVED_PATHS.test(path)) {
    refuse(`path must not be one of the server itself; got ${JSON.stringify(path)}. Choose another path.`)
  }
  const names = [...path.matchAll(/\/:(\w+)/g)].map(([, name]) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) refuse(`path must have each parameter once; got :${twice} twice in ${path}.`)
  if (typeof handle !== 'function') refuse(`the handler of ${method} ${path} must be a function.`)
  assertKnownOptions(options, OPTIONS, `route ${method} ${path}: `)
  const { role, maxBody = DEFAULTS.maxBody } = options
  if (role !== undefined && !ROLES.has(role)) refuse(`role must be 'read' or 'operate'; got ${JSON.stringify(role)}.`)
  if (maxBody !== Infinity && (!Number.isSafeInteger(maxBody) || maxBody < 0)) {
    refuse(`maxBody must be a whole number of bytes, or Infinity; got ${String(maxBody)}.`)
  }
  return { method, path, role, maxBody, handle, match: createPathMatcher(path) }
}

function refuse(message: string): never {
  throw invalidOption(`route: ${message}`)
}

function createPathMatcher(path: string): AppRoute['match'] {
  const literal = path.replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
  const regex = new RegExp(`^${literal.replaceAll(/\/:(\w+)/g, '/(?<$1>[^/]+)').replace(/\*$/, '.*')}$`)
  return (pathname) => {
    const found = regex.exec(pathname)
    return found === null ? undefined : decodeParams(found.groups ?? {})
  }
}

/** A parameter that is not valid percent-encoded UTF-8 names nothing, so the route does not match. */
function decodeParams(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    return undefined
  }
}

/** `BoundedRequest` is a request whose body fails to read beyond the bound of its route. */
export class BoundedRequest {
  readonly request: Request
  isTooLarge: boolean

  constructor(request: Request, maxBody: number) {
    const declared = request.headers.get('content-length')
    this.isTooLarge = Number(declared) > maxBody
    // The server holds the sender to a declared length, so only a body without one is counted.
    const isCounted = declared === null && request.body !== null && maxBody !== Infinity
    this.request = isCounted ? this.#counted(request, request.body, maxBody) : request
  }

  #counted({ url, method, headers, signal }: Request, body: ReadableStream<Uint8Array>, maxBody: number): Request {
    let left = maxBody
    const count = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        left -= chunk.length
        this.isTooLarge ||= left < 0
        if (this.isTooLarge) controller.error(new SluiceError('BODY_TOO_LARGE', tooLargeText(maxBody)))
        else controller.enqueue(chunk)
      },
    })
    return new Request(url, { method, headers, signal, body: body.pipeThrough(count), duplex: 'half' })
  }
}

/** `routeBodyTooLarge` is the response when a body exceeds the bound of its route. */
export function routeBodyTooLarge({ method, path, maxBody }: AppRoute): Problem {
  return { code: 'BODY_TOO_LARGE', what: tooLargeText(maxBody), fix: `Raise maxBody of route ${method} ${path}.` }
}

function tooLargeText(maxBody: number): string {
  return `The body has more than ${maxBody} bytes.`
}
