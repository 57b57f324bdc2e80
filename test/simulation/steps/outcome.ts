// How the handler of a simulated process ends.
import type { RunOutcome } from '../../../src/model/settle.ts'
import type { LeasedRun } from '../../../src/store/contract/index.ts'
import type { SettlePick } from '../commands.ts'
import { LEASE, TICK, type FlowSettings } from '../settings.ts'

const DELAYS = [0, TICK, 2 * TICK, 5 * TICK, LEASE, 1]

export function outcomeOf(lease: LeasedRun, pick: SettlePick, flow: FlowSettings): RunOutcome {
  const after = DELAYS[pick.number % DELAYS.length] ?? 0
  const block = flow.block || pick.number === 7
  switch (pick.outcome) {
    case 'retry':
      return { kind: 'retry', after }
    case 'snoozed':
    case 'released':
      return {
        kind: pick.outcome,
        after,
        state64: Buffer.from(JSON.stringify({ state: pick.number })).toString('base64'),
      }
    case 'dead':
      return { kind: 'dead', reason: 'it cannot be', block }
    case 'dropped':
      return { kind: 'dropped', reason: 'not wanted' }
    case 'partial':
      return partial(lease, pick.number, { after, block })
    case 'done':
    case 'cancelled':
      return { kind: pick.outcome }
  }
}

/** Reads the number as a rule over positions: some events are retried, some are dead, the others are done. */
function partial(
  lease: LeasedRun,
  number: number,
  how: { readonly after: number; readonly block: boolean },
): RunOutcome {
  const ids = [...new Set(lease.events.map((event) => event.id))]
  const every = (which: number): string[] =>
    number === 0 ? ['nobody'] : ids.filter((_id, n) => (n + number) % 3 === which)
  // An id in both lists is dead.
  const retry = number === 5 ? [...every(0), ...every(1)] : every(0)
  return { kind: 'partial', retry, dead: every(1), reason: 'in part', ...how }
}
