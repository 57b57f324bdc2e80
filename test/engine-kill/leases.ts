// Checks the store's replies about leases: after a lane was given to another process, the store accepts no settlement of its
// previous holder.
import type { Complaints } from './counts.ts'
import type { Line } from './load.ts'

interface Settled {
  readonly lane: string
  readonly token: number
  readonly sent: number
}

export class Leases {
  readonly #complaints: Complaints
  /** When the holder knew of each lease of a lane. */
  readonly #given = new Map<string, { readonly token: number; readonly at: number }[]>()
  readonly #accepted: Settled[] = []

  constructor(complaints: Complaints) {
    this.#complaints = complaints
  }

  turned({ sent, at, settled, claimed }: Line & { readonly kind: 'turned' }): void {
    for (const [lane, token] of claimed) {
      const given = this.#given.get(lane)
      if (given === undefined) this.#given.set(lane, [{ token, at }])
      else given.push({ token, at })
    }
    for (const [lane, token, answer] of settled) {
      if (answer === 'ok') this.#accepted.push({ lane, token, sent })
      else this.#complaints.counts.refused++
    }
  }

  stale({ lane, token, answer }: Line & { readonly kind: 'stale' }): void {
    if (answer === 'ok')
      this.#complaints.add('wrong', `lane ${lane}: the settlement of ${token}, which had ended, was accepted`)
    else this.#complaints.counts.refused++
  }

  /** Checks everything when the logs are complete. */
  check(): void {
    const settled = new Set<string>()
    for (const { lane, token, sent } of this.#accepted) {
      const name = `${lane} ${token}`
      if (settled.has(name)) this.#complaints.add('wrong', `lane ${lane}: ${token} was settled twice`)
      settled.add(name)
      const later = this.#given.get(lane)?.find((given) => given.token > token && given.at < sent)
      if (later !== undefined)
        this.#complaints.add('wrong', `lane ${lane}: ${token} was settled after ${later.token} had begun`)
    }
  }
}
