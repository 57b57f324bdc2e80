// `FailingClaims` tracks flows whose claims the store rejects repeatedly with the same error while other calls succeed. The loop
// sends such a claim alone and rarely, so that it delays no other flow. The alert `claim:<flow>` and `explain` show the error.
import { SluiceError } from '../errors.ts'
import type { ClaimRequest } from '../store/contract/index.ts'

/** With these codes nothing of the call was written, so its parts may be sent again in other calls. */
const NOTHING_WRITTEN: ReadonlySet<string> = new Set(['STORE_FAILED', 'STORE_DAMAGED'])

/** `isRefusal` returns whether the error means that the store wrote nothing of the call. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SluiceError && NOTHING_WRITTEN.has(error.code)
}

interface ClaimAlert {
  readonly alert: string
  readonly text: string
}

export interface FailingClaimsDependencies {
  readonly raise: (alert: ClaimAlert) => void
  readonly clear: (alert: ClaimAlert) => void
}

export class FailingClaims {
  readonly #deps: FailingClaimsDependencies
  readonly #errors = new Map<string, string>()

  constructor(deps: FailingClaimsDependencies) {
    this.#deps = deps
  }

  /** `errorOf` returns why claims of the flow fail; undefined if they do not. */
  errorOf(flow: string): string | undefined {
    return this.#errors.get(flow)
  }

  has({ flow }: Pick<ClaimRequest, 'flow'>): boolean {
    return this.#errors.has(flow)
  }

  markFailed(flow: string, error: string): void {
    const isKnown = this.#errors.get(flow) === error
    this.#errors.set(flow, error)
    if (!isKnown)
      this.#deps.raise({ alert: toAlertName(flow), text: `No run of flow ${flow} can be claimed: ${error}` })
  }

  markWorking(flow: string): void {
    if (!this.#errors.delete(flow)) return
    this.#deps.clear({ alert: toAlertName(flow), text: `Runs of flow ${flow} are claimed again.` })
  }
}

function toAlertName(flow: string): string {
  return `claim:${flow}`
}
