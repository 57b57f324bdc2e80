// `route` declares one route of the admin API as data: input, output, role, audit text and handler. The server, the
// OpenAPI document, the command line and the tests all read the same declaration.
import type { z } from 'zod'
import type { ApiTarget } from './api-target.ts'

/** The role `operate` includes all that `read` may do. */
export type Role = 'read' | 'operate'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type RateLimitedAction = 'registrations' | 'tests'

interface RouteInput<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The name of the caller's key; `loopback` without a key. */
  readonly actor: string
}

interface RouteDeclaration<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType> {
  readonly method: Method
  /** e.g. `/v1/flows/{flow}/pause` */
  readonly path: string
  /** Unique: generated clients use it as the method name. */
  readonly name: string
  readonly tag: string
  readonly summary: string
  readonly role: Role
  /** The token of the endpoint that `{id}` names also opens this route. */
  readonly allowsOwnToken?: true
  /**
   * Set if the route makes Sluice send requests to other servers. Such calls have their own limit per address and key.
   * A function decides per request.
   */
  readonly rateLimited?:
    | RateLimitedAction
    | ((asked: RouteInput<z.output<P>, z.output<Q>, z.output<B>>) => RateLimitedAction | undefined)
  /** The status of success; the default is 200. */
  readonly status?: 202
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly response: A
  /**
   * The text for the audit log, e.g. `pause the flow f`. `in its commit` means that the action writes its own entry.
   */
  readonly auditText?: ((asked: RouteInput<z.output<P>, z.output<Q>, z.output<B>>) => string) | 'in its commit'
  readonly handle: (app: ApiTarget, asked: RouteInput<z.output<P>, z.output<Q>, z.output<B>>) => Promise<z.input<A>>
}

/** `ApiRoute` is a route of any types. Each request is checked against the schemas of its route. */
export type ApiRoute = RouteDeclaration<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>

export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType>(
  declared: RouteDeclaration<P, Q, B, A>,
): ApiRoute {
  if ((declared.role === 'operate') !== (declared.auditText !== undefined)) {
    throw new TypeError(`${declared.method} ${declared.path}: what operates is audited, and nothing else.`)
  }
  return declared
}
