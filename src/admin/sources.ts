// `Sources` is `app.admin.sources`: the sources of the app, the requests they refused, and their secrets.
import type { DeclaredSource } from '../receive/source-options.ts'
import type { SampleRequest, SourceActivity } from './source-activity.ts'
import type { RefusedRequest } from '../receive/refused-requests.ts'

export interface SourceView {
  readonly name: string
  readonly scheme: string
  /** The path at which the source takes requests. */
  readonly path: string
}

export interface Sources {
  list(): readonly SourceView[]
  /** `declared` includes the secrets, because `sluice send` signs with them. The API never returns them. */
  declared(source: string): DeclaredSource | undefined
  /** `refused` returns the latest refused requests, newest first. The source `''` has those to unknown sources. */
  refused(source: string): Promise<readonly RefusedRequest[]>
  /** `secret` returns the secret from the handshake, so that an operator can compare it. The audit log records that. */
  secret(source: string, by?: string): Promise<string | undefined>
  /** `forgetSecret` makes a source with a handshake wait for the next one. The audit log records `by`. */
  forgetSecret(source: string, by?: string): Promise<'forgotten' | 'none'>
}

export interface SourcesAdmin extends Sources {
  /** `activity` returns what each source received and refused lately. */
  activity(): Promise<readonly SourceActivity[]>
  /** `sample` signs a test request to the source at the origin. It returns undefined for an unknown source. */
  sample(source: string, origin: string): Promise<SampleRequest | undefined>
}
