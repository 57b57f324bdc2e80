// What a person can do to a way in: see which there are, what they refused, and have a secret forgotten.
import type { DeclaredSource } from '../receive/declared-source.ts'
import type { RefusedRequest } from '../receive/refused-requests.ts'

export interface SourceView {
  readonly name: string
  readonly scheme: string
  /** Where it takes requests. */
  readonly path: string
}

export interface SourcesParts {
  readonly declared: () => readonly SourceView[]
  readonly declaredAs: (source: string) => DeclaredSource | undefined
  readonly refused: (source: string) => Promise<readonly RefusedRequest[]>
  readonly forgetSecret: (source: string, by?: string) => Promise<'forgotten' | 'none'>
  readonly secretOf: (source: string, by?: string) => Promise<string | undefined>
}

export class Sources {
  readonly #parts: SourcesParts

  constructor(parts: SourcesParts) {
    this.#parts = parts
  }

  list(): readonly SourceView[] {
    return this.#parts.declared()
  }

  /** With its secrets: for `sluice send`, which signs by them. The API never tells them. */
  declared(source: string): DeclaredSource | undefined {
    return this.#parts.declaredAs(source)
  }

  /** The last requests that it refused, in any process, newest first; of `''` those to no source. */
  refused(source: string): Promise<readonly RefusedRequest[]> {
    return this.#parts.refused(source)
  }

  /** The secret that came by handshake, to be compared with the sending side's; the look goes into the audit trail. */
  secret(source: string, by?: string): Promise<string | undefined> {
    return this.#parts.secretOf(source, by)
  }

  /** A source that got its secret by handshake waits for the next one; `by` goes into the audit trail. */
  forgetSecret(source: string, by?: string): Promise<'forgotten' | 'none'> {
    return this.#parts.forgetSecret(source, by)
  }
}
