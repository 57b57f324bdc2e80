// `Sources` lists the sources, shows the requests they refused, and forgets a secret.
import type { DeclaredSource } from '../receive/source-options.ts'
import type { RefusedRequest } from '../receive/refused-requests.ts'

export interface SourceView {
  readonly name: string
  readonly scheme: string
  /** The path at which the source takes requests. */
  readonly path: string
}

export interface SourceAdminDependencies {
  readonly declared: () => readonly SourceView[]
  readonly declaredAs: (source: string) => DeclaredSource | undefined
  readonly refused: (source: string) => Promise<readonly RefusedRequest[]>
  readonly forgetSecret: (source: string, by?: string) => Promise<'forgotten' | 'none'>
  readonly secretOf: (source: string, by?: string) => Promise<string | undefined>
}

export class Sources {
  readonly #deps: SourceAdminDependencies

  constructor(deps: SourceAdminDependencies) {
    this.#deps = deps
  }

  list(): readonly SourceView[] {
    return this.#deps.declared()
  }

  /** `declared` includes the secrets, because `sluice send` signs with them. The API never returns them. */
  declared(source: string): DeclaredSource | undefined {
    return this.#deps.declaredAs(source)
  }

  /**
   * `refused` returns the latest refused requests of all processes, newest first. The source `''` has the requests to
   * unknown sources.
   */
  refused(source: string): Promise<readonly RefusedRequest[]> {
    return this.#deps.refused(source)
  }

  /**
   * `secret` returns the secret from the handshake, so that an operator can compare it. The audit log records the
   * access.
   */
  secret(source: string, by?: string): Promise<string | undefined> {
    return this.#deps.secretOf(source, by)
  }

  /** `forgetSecret` makes a source with a handshake wait for the next one. The audit log records `by`. */
  forgetSecret(source: string, by?: string): Promise<'forgotten' | 'none'> {
    return this.#deps.forgetSecret(source, by)
  }
}
