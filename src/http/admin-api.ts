// `AdminApi` is what the server and the dashboard need of the admin API, which is created on first use.
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'
import type { ServerAddress } from '../crypto/key-proof.ts'
import type { RouteRole } from './app-route.ts'

export interface AdminApi {
  handle(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse>
  /** Streams live events until the client disconnects. */
  stream(head: RequestHead, connection: ConnectionInfo): Promise<Response>
  /** Returns the caller's name, or the response that rejects a caller without the role. */
  authorize(head: RequestHead, connection: ConnectionInfo, role: RouteRole): Promise<string | SourceResponse>
}

/** `ConnectionInfo` says how a request arrived. */
export interface ConnectionInfo {
  /** False if something may be in between, e.g. a proxy or another framework. */
  readonly isDirect: boolean
  /** The local address of the connection, if it ends at our own server. */
  readonly local?: ServerAddress
  /** Set below a mount of the dashboard, where the cookie of its session counts. `user` is whom the host app signed in. */
  readonly dashboard?: { readonly user?: DashboardUser }
}

/** `DashboardUser` is a person whom the host app has signed in. */
export interface DashboardUser {
  /** The name in the audit log, after `host:`. */
  readonly name: string
  /** The role `read` sees everything and changes nothing. */
  readonly role: 'read' | 'operate'
}

export function isStreamRequest({ method, url }: RequestHead): boolean {
  return method === 'GET' && url.pathname === '/v1/stream'
}
