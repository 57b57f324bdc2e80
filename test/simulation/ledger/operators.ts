// The ledger's check of operators' actions: it trusts the store on whether something happened, but not on the consequences.
import type { Millis } from '../../../src/clock.ts'
import type { LeasedUnroutedEvent, SteerCall, SteerReply } from '../../../src/store/contract/index.ts'
import type { Purged } from '../model/purge.ts'
import { UNSEEN, endAll, isLeased, countUnrouted, type Ledger, type LedgerLane, type Placement } from './state.ts'

export interface SeenSteer {
  readonly call: SteerCall
  readonly results: SteerReply['results']
  readonly now: Millis
  readonly unrouted: readonly LeasedUnroutedEvent[]
}

export function steered(ledger: Ledger, { call, results, now, unrouted }: SeenSteer): void {
  call.ids.forEach((id, n) => {
    if (results[n] !== 'ok') return
    switch (call.what) {
      case 'lanes':
        return steeredLane(ledger.lanes.get(String(id)), call.act.kind, now)
      case 'dead':
        return steeredDeadLetter(ledger, String(id), call.act)
      case 'flows':
        if (call.act.kind === 'pause') ledger.paused.add(String(id))
        else ledger.paused.delete(String(id))
        return undefined
      case 'unrouted':
        return call.act === 'drop'
          ? countUnrouted(ledger, unrouted.find((entry) => entry.id === id)?.event.id ?? '', -1)
          : undefined
    }
  })
}

function steeredLane(lane: LedgerLane | undefined, act: string, now: Millis): void {
  if (lane === undefined) return
  if (act === 'hold') lane.held = true
  if (act === 'unhold') lane.held = false
  if (act === 'hold' || act === 'drop') lane.passedBy.clear()
  if (act === 'run-now' && lane.run !== undefined) lane.run.notBefore = Math.min(lane.run.notBefore, now)
  if (act !== 'drop') return
  endAll(
    lane.placements.filter((one) => one.state === 'waiting'),
    'dropped',
  )
  const { run } = lane
  if (run === undefined || isLeased(run, now)) return
  endAll(
    run.items.filter((item) => item.state !== 'purged'),
    'dropped',
  )
  lane.deadLetters.delete(run.id ?? `again of ${run.parent}`)
  lane.run = undefined
  lane.lastEnd = Math.max(lane.lastEnd, now)
}

/** The dead letter of a partial outcome is known by its parent until a list has shown its id. */
export function namedDeadLetter(
  ledger: Ledger,
  found: { lane: string; parent: string; id: string; events: string },
): void {
  const lane = ledger.lanes.get(found.lane)
  for (const name of [`rest of ${found.parent}`, `again of ${found.parent}`]) {
    const deadLetter = lane?.deadLetters.get(name)
    if (lane === undefined || deadLetter === undefined) continue
    if (deadLetter.items.map((item) => item.event).join() !== found.events) continue
    lane.deadLetters.delete(name)
    lane.deadLetters.set(found.id, deadLetter)
    if (lane.run?.items === deadLetter.items) lane.run.id = found.id
  }
}

function steeredDeadLetter(ledger: Ledger, id: string, act: 'retry' | 'drop' | 'unblock'): void {
  for (const lane of ledger.lanes.values()) {
    const deadLetter = lane.deadLetters.get(id)
    if (deadLetter === undefined) continue
    // Queueing or dropping a dead letter moves the lane's deadline, so its waiting starts again.
    lane.passedBy.clear()
    if (act === 'retry') deadLetter.queued = true
    if (act === 'unblock') deadLetter.blocks = false
    if (act !== 'drop') continue
    endAll(deadLetter.items, 'dropped')
    lane.deadLetters.delete(id)
  }
}

export function purged(
  ledger: Ledger,
  seen: { readonly what: Purged; readonly now: Millis; readonly tenantOf: (event: string) => string },
): void {
  const { what, now } = seen
  const isPurged = (one: Placement): boolean => {
    if (what.kind === 'lanes') return what.ids.includes(one.lane)
    return what.kind === 'event' ? one.event === what.id : seen.tenantOf(one.event) === what.tenant
  }
  for (const lane of ledger.lanes.values()) purgeLane(lane, isPurged, now)
  if (what.kind === 'event') ledger.marked.delete(what.id)
  if (what.kind === 'tenant')
    for (const id of ledger.marked.keys()) if (seen.tenantOf(id) === what.tenant) ledger.marked.delete(id)
}

function purgeLane(lane: LedgerLane, isPurged: (one: Placement) => boolean, now: Millis): void {
  const hit = lane.placements.filter(isPurged)
  if (hit.length === 0) return
  const pending = hit.filter((one) => one.state === 'waiting' || one.state === 'in a run' || one.state === 'dead')
  lane.passedBy.clear()
  for (const [id, deadLetter] of lane.deadLetters) {
    const items = deadLetter.items.filter((item) => !hit.includes(item))
    if (items.length === 0) lane.deadLetters.delete(id)
    else if (items.length < deadLetter.items.length) lane.deadLetters.set(id, { ...deadLetter, items })
  }
  const { run } = lane
  if (run !== undefined) run.innocent = run.innocent.filter((item) => !hit.includes(item))
  if (run !== undefined && !run.purged && run.items.some((item) => hit.includes(item))) {
    run.purged = true
    run.innocent = run.items.filter((item) => item.state === 'in a run' && !hit.includes(item))
    if (!isLeased(run, now)) {
      if (run.deadLetter) endAll(run.innocent, 'dead')
      const rest = {
        ...run,
        id: undefined,
        parent: run.id ?? UNSEEN,
        items: run.innocent,
        purged: false,
        deadLetter: false,
      }
      lane.run = run.innocent.length === 0 || run.deadLetter ? undefined : rest
      lane.lastEnd = Math.max(lane.lastEnd, now)
    }
  }
  endAll(pending, 'purged')
  lane.unsure = true
}
