// Tells how a run ended: what the store settled, not what the handler hoped for.
import type { Millis } from '../clock.ts'
import type { Outcome } from '../model/settle.ts'
import type { Lease, Settle, Settled } from '../store/contract/index.ts'
import type { AnyListener, EventMap, OfRun } from './events.ts'
import { emitWithFacts } from './tallies-facts.ts'

export interface End {
  readonly lease: Lease
  readonly told: OfRun
  readonly settle: Settle
  readonly settled: Settled
  readonly verdict: { readonly outcome: Outcome; readonly error: string | undefined; readonly why?: string }
  readonly ms: Millis
  readonly counts: Readonly<Record<string, number>>
  readonly emit: AnyListener
}

type Endings = 'done' | 'dropped' | 'again' | 'retry' | 'dead' | 'cancelled' | 'partial'

export function tellEnd({ lease, told, settled, verdict, ms, counts, emit }: End): void {
  const ended = { ...told, ms }
  if (settled !== 'ok') {
    const why = settled === 'purged' ? 'Its events were purged.' : 'Its lease ended before the store heard of its end.'
    return emit('run.lost', { ...ended, why })
  }
  const { outcome } = verdict
  const error = verdict.error ?? ''
  const tell = <E extends Endings>(how: E, what: EventMap[`run.${E}`]): void =>
    emitWithFacts(emit, `run.${how}`, what, { lease, outcome })
  switch (outcome.kind) {
    case 'done':
      return tell('done', { ...ended, counts })
    case 'dropped':
      return tell('dropped', { ...ended, reason: outcome.reason })
    case 'again':
    case 'released':
      return tell('again', { ...ended, after: outcome.after, why: verdict.why ?? '' })
    case 'retry':
      return tell('retry', { ...ended, error, after: outcome.after })
    case 'dead':
      return tell('dead', { ...ended, error })
    case 'cancelled':
      return tell('cancelled', ended)
    case 'partial':
      return tell('partial', { ...ended, error, failed: outcome.retry.length + outcome.dead.length })
  }
}
