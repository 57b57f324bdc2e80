// Tells how a run ended: what the store settled, not what the handler hoped for.
import type { Millis } from '../clock.ts'
import type { Outcome } from '../model/settle.ts'
import type { Settle, Settled } from '../store/contract/index.ts'
import type { AnyListener, OfRun } from './events.ts'

export interface End {
  readonly told: OfRun
  readonly settle: Settle
  readonly settled: Settled
  readonly verdict: { readonly outcome: Outcome; readonly error: string | undefined; readonly why?: string }
  readonly ms: Millis
  readonly counts: Readonly<Record<string, number>>
  readonly emit: AnyListener
}

export function tellEnd({ told, settled, verdict, ms, counts, emit }: End): void {
  const ended = { ...told, ms }
  if (settled !== 'ok') {
    const why = settled === 'purged' ? 'Its events were purged.' : 'Its lease ended before the store heard of its end.'
    return emit('run.lost', { ...ended, why })
  }
  const { outcome } = verdict
  const error = verdict.error ?? ''
  switch (outcome.kind) {
    case 'done':
      return emit('run.done', { ...ended, counts })
    case 'dropped':
      return emit('run.dropped', { ...ended, reason: outcome.reason })
    case 'again':
    case 'released':
      return emit('run.again', { ...ended, after: outcome.after, why: verdict.why ?? '' })
    case 'retry':
      return emit('run.retry', { ...ended, error, after: outcome.after })
    case 'dead':
      return emit('run.dead', { ...ended, error })
    case 'cancelled':
      return emit('run.cancelled', ended)
    case 'partial':
      return emit('run.partial', { ...ended, error, failed: outcome.retry.length + outcome.dead.length })
  }
}
