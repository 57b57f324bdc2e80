// `route` declares one route of the admin API as data: input, output, role, audit text and handler. The server, the
// OpenAPI document, the command line and the tests all read the same declaration.
import type { z } from 'zod'
import type { Admin } from '../admin/admin.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput, PublishResult, PublishTarget } from '../model/event.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { Explanation } from '../observe/explain/explain.ts'
import { suggestName } from '../validate/closest-name.ts'
import { NO_FIELDS, type NoFields } from './schemas.ts'

/** `ApiTarget` is the part of an app that the admin API reads and controls. */
export interface ApiTarget {
  readonly admin: Admin
  readonly endpoints: Endpoints
  explain(flow: string, key: string): Promise<Explanation>
  publish(events: readonly EventInput[], target: PublishTarget): Promise<readonly PublishResult[]>
}

/** The role `operate` includes all that the others may do. */
export type Role = 'read' | 'publish' | 'register' | 'operate'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type RateLimitedAction = 'registrations' | 'tests'

interface RouteInput<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The name of the caller's key; `loopback` without a key. */
  readonly actor: string
  /** The tenant to which the caller's key is bound; undefined for all keys but those with the role `register`. */
  readonly keyTenant: string | undefined
}

/** Handlers return what `app.admin` returns, which is readonly. */
type RouteOutput<T> = T extends object ? { readonly [Name in keyof T]: RouteOutput<T[Name]> } : T

interface RouteDeclaration<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType> {
  readonly method: Method
  /** e.g. `/v1/flows/{flow}/pause` */
  readonly path: string
  /** Unique: generated clients use it as the method name. */
  readonly name: string
  readonly summary: string
  /** The token of the endpoint that `{id}` names also opens this route. */
  readonly allowsOwnToken?: true
  /**
   * Set if the route makes Sluice send requests to other servers. These calls have their own limit per address and key.
   * A function decides per request.
   */
  readonly rateLimited?:
    | RateLimitedAction
    | ((input: RouteInput<z.output<P>, z.output<Q>, z.output<B>>) => RateLimitedAction | undefined)
  /** The status of success; the default is 200. */
  readonly status?: 202
  /** The fields of the input. Default: none. */
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly response: A
  /**
   * The text for the audit log, e.g. `pause the flow f`. `in its commit` means that the store writes
   * the entry in the commit of the action itself, so the route adds none.
   * Every route but GET has one, and needs the role `operate`.
   */
  readonly auditText?: ((input: RouteInput<z.output<P>, z.output<Q>, z.output<B>>) => string) | 'in its commit'
  /** Reads a body of other content types than JSON too. Default: JSON by the schema. */
  readonly parseBody?: (head: RequestHead, body: Uint8Array) => z.output<B>
  /** The other content types, with what they hold. */
  readonly bodyTypes?: Readonly<Record<string, string>>
  /** A route that publishes is in no audit log, because the events are stored themselves. */
  readonly role?: 'publish' | 'register'
  readonly handle: (
    app: ApiTarget,
    input: RouteInput<z.output<P>, z.output<Q>, z.output<B>>,
  ) => Promise<RouteOutput<z.input<A>>>
}

type AnyRoute = Omit<RouteDeclaration<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>, 'role'>

/** `ApiRoute` is a route of any types. Each request is checked against the schemas of its route. */
export interface ApiRoute extends Omit<AnyRoute, 'params' | 'query' | 'body'> {
  readonly tag: string
  readonly role: Role
  readonly params: z.ZodObject
  readonly query: z.ZodObject
  readonly body: z.ZodType
}

type Untagged = Omit<ApiRoute, 'tag'>

export function route<
  A extends z.ZodType,
  P extends z.ZodObject = z.ZodObject<NoFields>,
  Q extends z.ZodObject = z.ZodObject<NoFields>,
  B extends z.ZodType = z.ZodObject<NoFields>,
>(declared: RouteDeclaration<P, Q, B, A>): Untagged {
  const isRead = declared.method === 'GET'
  const isAudited = !isRead && declared.role !== 'publish'
  if (isAudited === (declared.auditText === undefined)) {
    throw new TypeError(`${declared.method} ${declared.path}: what operates is audited, and nothing else.`)
  }
  const inputs = { params: NO_FIELDS, query: NO_FIELDS, body: NO_FIELDS }
  return { ...inputs, ...(declared as unknown as AnyRoute), role: declared.role ?? (isRead ? 'read' : 'operate') }
}

/** `withTag` groups routes under one tag of the OpenAPI document. */
export function withTag(tag: string, routes: readonly Untagged[]): readonly ApiRoute[] {
  return routes.map((one) => ({ ...one, tag }))
}

/** `orNotFound` returns what was found. A missing object is a 404, in the same words for every kind. */
export function orNotFound<T>(value: T, what: string, name: string, fix?: string): Exclude<T, undefined | 'missing'> {
  if (value === undefined || value === 'missing') {
    throw new SluiceError('NOT_FOUND', `There is no ${what} ${JSON.stringify(name.slice(0, 200))}.`, undefined, fix)
  }
  return value as Exclude<T, undefined | 'missing'>
}

/** `orSuggest` is `orNotFound` for an object that people name: the fix asks whether they meant another one. */
export async function orSuggest<T>(
  found: T,
  what: string,
  name: string,
  listNames: () => Promise<readonly string[]>,
): Promise<Exclude<T, undefined | 'missing'>> {
  const isMissing = found === undefined || found === 'missing'
  const fix = isMissing ? suggestName(name, await listNames()).trim() : ''
  return orNotFound(found, what, name, fix === '' ? undefined : fix)
}
