// One route of the admin API as data: what it takes, what it answers, who may, and what it does. The server, the OpenAPI
// document, the command line and the tests all read the same declaration.
import type { z } from 'zod'
import type { Operated } from './operated.ts'

/** `operate` may all that `read` may. */
export type Role = 'read' | 'operate'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type Counted = 'registrations' | 'tests'

interface Asked<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** Whose key it was; `loopback` without one. */
  readonly who: string
}

interface Declared<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType> {
  readonly method: Method
  /** `/v1/flows/{flow}/pause` */
  readonly path: string
  /** Unique: generated clients call it so. */
  readonly name: string
  readonly tag: string
  readonly summary: string
  readonly role: Role
  /** Whoever has the own token of the subscriber that `{id}` names may, too. */
  readonly own?: true
  /** Has us post to somebody: counted by address and key, apart from all other calls. Where that is up to what is asked, by that. */
  readonly counted?: Counted | ((asked: Asked<z.output<P>, z.output<Q>, z.output<B>>) => Counted | undefined)
  /** Of what is done; 200 unless said. */
  readonly status?: 202
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly answer: A
  /** The act as the audit log says it: `pause the flow f`. `in its commit`: it writes its own entry, if it is done. */
  readonly audited?: ((asked: Asked<z.output<P>, z.output<Q>, z.output<B>>) => string) | 'in its commit'
  readonly handle: (app: Operated, asked: Asked<z.output<P>, z.output<Q>, z.output<B>>) => Promise<z.input<A>>
}

/** Of any types: what they are is checked where the request is. */
export type ApiRoute = Declared<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>

export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType>(
  declared: Declared<P, Q, B, A>,
): ApiRoute {
  if ((declared.role === 'operate') !== (declared.audited !== undefined)) {
    throw new TypeError(`${declared.method} ${declared.path}: what operates is audited, and nothing else.`)
  }
  return declared
}
