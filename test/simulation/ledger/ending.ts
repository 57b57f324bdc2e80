// The ledger's check of how an attempt ended: each of its events is accounted for.
import { addDelay, type Millis } from '../../../src/clock.ts'
import type { Settlement } from '../../../src/store/contract/index.ts'
import { endAll } from './state.ts'
import type { LedgerLane, LedgerRun, Placement } from './state.ts'

export function ending(lane: LedgerLane, run: LedgerRun, settle: Settlement, now: Millis): void {
  const { outcome } = settle
  if (run.purged) {
    endAll(run.innocent, run.deadLetter ? 'dead' : 'waiting')
    return over(lane, now)
  }
  switch (outcome.kind) {
    case 'done':
    case 'dropped':
      endAll(run.items, outcome.kind)
      if (run.id !== undefined) lane.deadLetters.delete(run.id)
      return over(lane, now)
    case 'dead':
      bury(lane, run.id ?? '', { items: run.items, parent: run.parent, blocks: outcome.block })
      return over(lane, now)
    case 'retry':
      run.tries += 1
      return putOff(run, addDelay(now, outcome.after))
    case 'snoozed':
    case 'released':
      return putOff(run, addDelay(now, outcome.after))
    case 'cancelled':
      run.maybeDissolved = run.tries === 0 && run.lapses === 0 && !run.deadLetter
      if (run.maybeDissolved) lane.unsure = true
      return putOff(run, now)
    case 'partial':
      return inPart(lane, run, outcome, now)
  }
}

function over(lane: LedgerLane, now: Millis): void {
  lane.run = undefined
  lane.lastEnd = Math.max(lane.lastEnd, now)
}

function putOff(run: LedgerRun, until: Millis): void {
  run.leaseEnds = 0
  run.notBefore = until
}

type Buried = { readonly items: readonly Placement[]; readonly parent: string; readonly blocks: boolean }

function bury(lane: LedgerLane, id: string, { items, parent, blocks }: Buried): void {
  endAll(items, 'dead')
  const before = lane.deadLetters.get(id)
  lane.deadLetters.set(id, { items, parent, blocks: blocks || (before?.blocks ?? false), queued: false })
}

type Partial = Extract<Settlement['outcome'], { readonly kind: 'partial' }>

function inPart(lane: LedgerLane, run: LedgerRun, outcome: Partial, now: Millis): void {
  const dead = run.items.filter((item) => outcome.dead.includes(item.event))
  const again = run.items.filter((item) => outcome.retry.includes(item.event) && !dead.includes(item))
  const parent = run.id ?? ''
  endAll(
    run.items.filter((item) => !dead.includes(item) && !again.includes(item)),
    'done',
  )
  const deadLetter = lane.deadLetters.get(parent)
  lane.deadLetters.delete(parent)
  if (dead.length > 0) bury(lane, `rest of ${parent}`, { items: dead, parent, blocks: outcome.block })
  if (again.length === 0) return over(lane, now)
  const until = addDelay(now, outcome.after)
  const rest = { ...run, id: undefined, parent, items: again, leaseEnds: 0, notBefore: until, tries: run.tries + 1 }
  lane.run = rest
  if (deadLetter !== undefined) lane.deadLetters.set(`again of ${parent}`, { ...deadLetter, items: again, parent })
}
