// Emits how a run ended: as the store settled it, not as the handler intended it.
import type { Millis } from '../clock.ts'
import type { RunOutcome } from '../model/settle.ts'
import type { LeasedRun, Settlement, SettleResult } from '../store/contract/index.ts'
import type { AnyListener, EventMap, RunPayload } from './emitter.ts'
import { emitWithFacts } from './stats/run-facts.ts'

export interface RunEnd {
  readonly lease: LeasedRun
  readonly payload: RunPayload
  readonly settle: Settlement
  readonly settled: SettleResult
  readonly verdict: { readonly outcome: RunOutcome; readonly error: string | undefined; readonly why?: string }
  readonly ms: Millis
  readonly counts: Readonly<Record<string, number>>
  readonly emit: AnyListener
}

type EndingName = 'done' | 'dropped' | 'snoozed' | 'deferred' | 'retry' | 'dead' | 'cancelled' | 'partial'

export function emitRunEnd({ lease, payload, settled, verdict, ms, counts, emit }: RunEnd): void {
  const ended = { ...payload, ms }
  if (settled !== 'ok') {
    const why = settled === 'purged' ? 'Its events were purged.' : 'Its lease ended before the store heard of its end.'
    return emit('run.lost', { ...ended, why })
  }
  const { outcome } = verdict
  const error = verdict.error ?? ''
  const emitEnding = <E extends EndingName>(ending: E, fields: EventMap[`run.${E}`]): void =>
    emitWithFacts(emit, `run.${ending}`, fields, { lease, outcome })
  switch (outcome.kind) {
    case 'done':
      return emitEnding('done', { ...ended, counts })
    case 'dropped':
      return emitEnding('dropped', { ...ended, reason: outcome.reason, counts })
    case 'snoozed':
      return emitEnding('snoozed', { ...ended, after: outcome.after })
    case 'released':
      return emitEnding('deferred', { ...ended, after: outcome.after, why: verdict.why ?? '' })
    case 'retry':
      return emitEnding('retry', { ...ended, error, after: outcome.after })
    case 'dead':
      return emitEnding('dead', { ...ended, error })
    case 'cancelled':
      return emitEnding('cancelled', ended)
    case 'partial':
      return emitEnding('partial', { ...ended, error, failed: outcome.retry.length + outcome.dead.length })
  }
}
