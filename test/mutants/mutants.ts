// Planted bugs: readings of the rules that are too loose and lose events, and typical slips in the code.
// The simulation must find each of them. If it does not find one, the simulation does not check that part of the code.

interface Edit {
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly name: string
  /** The hunt that must find the bug; by default, lanes in memory. */
  readonly hunt?: 'sqlite' | 'limits:memory'
  readonly edits: readonly Edit[]
}

function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name, edits: [{ file, find, replace }] }
}

function inSqlite(name: string, file: string, find: string, replace: string): Mutant {
  return { ...mutant(name, `store/sqlite/${file}`, find, replace), hunt: 'sqlite' }
}

function inLimits(name: string, file: string, find: string, replace: string): Mutant {
  return { ...mutant(name, file, find, replace), hunt: 'limits:memory' }
}

const PLACE = 'model/place.ts'
const CLAIM = 'model/claim.ts'
const SETTLE = 'model/settle.ts'
const LANE = 'model/lane.ts'
const APPEND = 'store/core/append.ts'
const TURN = 'store/core/settle-and-claim.ts'
const ENDING = 'store/core/settle.ts'
const LEASES = 'store/core/leases.ts'
const PURGE = 'store/core/purge.ts'
const LIMITS = 'store/core/limits.ts'
const LIMIT = 'model/limit.ts'

export const MUTANTS: readonly Mutant[] = [
  // L1
  mutant(
    'tokens count in the lane, which is deleted',
    TURN,
    'token: work.draw(), caps',
    'token: (lane.run?.token ?? 0) + 1, caps',
  ),
  mutant('no fence: any token settles', ENDING, 'run.token !== call.token || ', ''),
  mutant('a settlement after the lease counts', ENDING, ' || !isLiveRun(run, work.now)) return', ') return'),
  mutant('a renewal after the lease counts', LEASES, ' || !isLiveRun(run, work.now)) return', ') return'),
  // L2, L2b, L18
  mutant(
    'an unrouted event is placed twice',
    'store/core/unrouted.ts',
    'removeDuplicateLanes(item.placements).filter((one) => !event.lanes.includes(one.lane))',
    'removeDuplicateLanes(item.placements)',
  ),
  mutant(
    'an unrouted event that is retried by hand waits for a start',
    'store/core/steer.ts',
    `isRoutingFault(reason) ? 'routes-old' : reason`,
    'reason',
  ),
  mutant('placing an unrouted event needs no token', 'store/core/unrouted.ts', 'entry.token !== item.token || ', ''),
  mutant(
    'old routes are accepted',
    APPEND,
    'if (call.routes < work.tables.routes()) return',
    'if (call.routes < 0) return',
  ),
  mutant(
    'a duplicate published event is reported as stored',
    TURN,
    "result.kind === 'stored' ||",
    "result.kind === 'duplicate' || result.kind === 'stored' ||",
  ),
  mutant(
    'an event that a retried attempt published is stored as new',
    ENDING,
    'appendPublished(work, call.publish, routes)',
    '[]',
  ),
  // L3, L4
  mutant('a passed deadline is moved', PLACE, 'passed ? lane.window : deadline()', 'deadline()'),
  mutant(
    'only the first event has a max',
    PLACE,
    'Math.min(lane.cap, computeCap(placement, now))',
    'lane.waiting === 0 ? computeCap(placement, now) : lane.cap',
  ),
  mutant(
    'a window without its max',
    PLACE,
    'Math.min(addDelay(context.now, placement.quiet), cap)',
    'addDelay(context.now, placement.quiet)',
  ),
  mutant('a full window waits', PLACE, 'full || isLeading', 'isLeading'),
  mutant('every event leads', PLACE, '(lane.ended === 0 || addDelay(lane.ended, placement.quiet) <= now)', 'true'),
  // L5
  mutant(
    'the ticket is not drawn anew when a deadline moves',
    LANE,
    "(set === 'anew' || due !== lane.due)",
    "set === 'anew'",
  ),
  mutant(
    'the ticket stays when a run ends at the same moment',
    LANE,
    "(set === 'anew' || due !== lane.due)",
    'due !== lane.due',
  ),
  mutant(
    'ties go to the older lane',
    'store/memory/tables.ts',
    'one.due - other.due || one.ticket - other.ticket',
    'one.due - other.due || one.row - other.row',
  ),
  mutant(
    'groups are served by their heads alone',
    'store/memory/tables.ts',
    'served(one) - served(other) || compareByDeadline(one, other)',
    'compareByDeadline(one, other)',
  ),
  mutant(
    'a group has no bound',
    'store/memory/tables.ts',
    '.filter((lane) => (live.get(lane.group) ?? 0) < maxPerGroup)',
    '',
  ),
  mutant(
    'groups have one turn in a claim, and no second round',
    TURN,
    'ahead === undefined || ahead.heads.length === 0 || ahead',
    'ahead === undefined || ahead',
  ),
  // L6
  mutant(
    'events that arrived during a run get no deadline',
    SETTLE,
    'atOnce ? now : Math.max(lane.window, now)',
    'atOnce ? now : NEVER',
  ),
  mutant(
    'events that arrived during a run keep their old deadline',
    SETTLE,
    'Math.max(lane.window, now),',
    'lane.window,',
  ),
  mutant(
    'requeue waits for the window',
    SETTLE,
    "lane.hasRemaining || (end.whileRunning === 'requeue' && tookWaiting)",
    'lane.hasRemaining',
  ),
  // L6c
  mutant('an event voids the run it cancels', PLACE, '{ ...run, cancel, full }', '{ ...run, cancel, full, token: 0 }'),
  mutant('a run can be cancelled after its cap', PLACE, ' && run.cap > now', ''),
  mutant(
    'a run has the cap of all that waited',
    CLAIM,
    'rows.reduce((least, row) => Math.min(least, row.cap), NEVER)',
    'lane.cap',
  ),
  mutant('take last has only the cap of its own event', CLAIM, "return take === 'all' ? rows", 'return true ? rows'),
  mutant('a cancelled run that fills the window waits for it', SETTLE, ' || run.full', ''),
  mutant('a run can be cancelled after its commit', PLACE, ' && !run.committed', ''),
  mutant('a run that failed is dissolved', PLACE, ' && run.first', ''),
  mutant(
    'a dissolved run gets a deadline in the past',
    SETTLE,
    'Math.max(context.now, Math.min(lane.window, run.cap))',
    'Math.min(lane.window, run.cap)',
  ),
  // L7
  mutant(
    'settled by the highest position',
    ENDING,
    'work.tables.placements.takeUpTo(lane, run.rank, run.upto)',
    'work.tables.placements.takeUpTo(lane, run.rank, lane.tail)',
  ),
  mutant('events left over wait for a new window', SETTLE, 'const atOnce = lane.hasRemaining || ', 'const atOnce = '),
  mutant('a run takes all waiting events', CLAIM, 'taken >= caps.maxEvents || bytes > caps.maxBytes', 'false'),
  mutant(
    'the last is the first',
    TURN,
    "caps.take === 'last' ? rows.slice(-1)",
    "caps.take === 'last' ? rows.slice(0, 1)",
  ),
  // L8
  mutant(
    'newcomers join a run that is tried again',
    CLAIM,
    "state: 'running',\n    token: context.token,\n    until: addDelay(context.now, context.caps.lease),\n  }",
    "upto: lane.tail,\n    state: 'running',\n    token: context.token,\n    until: addDelay(context.now, context.caps.lease),\n  }",
  ),
  mutant(
    'tried again at once',
    ENDING,
    "        addDelay(work.now, outcome.after),\n        work,\n      )\n    case 'snoozed'",
    "        work.now,\n        work,\n      )\n    case 'snoozed'",
  ),
  mutant(
    'the rest of a part keeps its id',
    ENDING,
    '    id: work.drawRunId(),\n    events: retry.length',
    '    events: retry.length',
  ),
  // L9
  {
    name: 'a hand retry runs beside the lane',
    edits: [
      {
        file: CLAIM,
        find: 'if (run !== undefined) {',
        replace: 'if (run !== undefined && lane.queuedDeadLetters === 0) {',
      },
      {
        file: LANE,
        find: 'if (lane.run !== undefined) return lane.run.until',
        replace: 'if (lane.run !== undefined && lane.queuedDeadLetters === 0) return lane.run.until',
      },
    ],
  },
  mutant(
    'a dropped dead letter still blocks',
    'store/core/steer.ts',
    'const freed = unblockIfBlockedBy(work, getDeadLetterLane(work, deadLetter), deadLetter.id)',
    'const freed = getDeadLetterLane(work, deadLetter)',
  ),
  mutant('a blocked lane goes on', LANE, 'if (lane.blocks > 0) return NEVER', ''),
  mutant(
    'a second manual retry queues again',
    'store/core/steer.ts',
    "if (deadLetter.state !== 'dead') return 'already'",
    "if (deadLetter.state === 'running') return 'already'",
  ),
  // L10
  mutant(
    'dedupe only while queued',
    APPEND,
    'known.dedupeUntil > work.now',
    'known.dedupeUntil > work.now && known.lanes.some((id) => work.tables.lanes.get(id) !== undefined)',
  ),
  mutant('other bytes are a duplicate', APPEND, "same ? 'duplicate' : 'conflict'", "'duplicate'"),
  // L12
  mutant(
    'a lapse is an attempt',
    CLAIM,
    'lapses: run.lapses + 1, first',
    'tries: run.tries + 1, lapses: run.lapses + 1, first',
  ),
  mutant('a lapse costs nothing, ever', CLAIM, 'lapsed.lapses >= LAPSES_MAX', 'lapsed.lapses >= 1e9'),
  mutant('a repeated claim claims again', TURN, 'call.request <= last.request', 'call.request < last.request'),
  mutant('suspects are not separate from other lanes', LANE, 'if (lapses >= 2) return SUSPECT', ''),
  // L14, L15, L16, L20, L24
  mutant('a hold is not kept', LANE, 'lane.hold === undefined ? natural', 'true ? natural'),
  mutant('a paused flow is served', TURN, 'if (work.tables.small.getPause(claim.flow) !== undefined) return []', ''),
  mutant(
    'a purge leaves errors that may quote a purged event',
    PURGE,
    'forgetTexts(work, lane, seqs, work.tables.runs.findByLane(lane, MAX_RUNS_SCANNED))',
    '',
  ),
  mutant(
    'a purge ends the live run',
    'store/core/purge.ts',
    'if (isLiveRun(run, work.now)) return { ...lane, run: { ...less, purged: true } }',
    '',
  ),
  mutant(
    'a replay waits for every live event',
    CLAIM,
    '(!liveReady || lane.liveClaims >= LIVE_CLAIMS_BEFORE_REPLAY)',
    '!liveReady',
  ),
  mutant(
    'a replay is replayed again',
    'store/core/unrouted.ts',
    ' || small.markReplayed(item.replay, event.seq, work.now)) return',
    ') return',
  ),
  mutant(
    'each process has all the permits',
    'store/core/limits.ts',
    'Math.min(want, max - taken)',
    'Math.min(want, max)',
  ),
  mutant('failing lanes have no slots of their own', LANE, 'return run.failed ? FAILING : HEALTHY', 'return HEALTHY'),
  // Bugs that the simulation itself once found
  mutant(
    'events left over get a window again when the clock is set back',
    SETTLE,
    'lane.hasRemaining ? Math.min(lane.cap, now) : lane.cap',
    'lane.cap',
  ),
  mutant('an event is a conflict with itself', APPEND, ' || known.id === event.id)', ')'),
  mutant(
    'a purge in steps loses its way',
    PURGE,
    'if (events.length > 0) runs.put({ ...run, events }, false)',
    'if (false) runs.put(run)',
  ),
  mutant(
    'a purged run ends in its own way',
    ENDING,
    'endPurgedRun(work, lane, run, call)',
    "endPurgedRun(work, lane, run, { whileRunning: 'window', keep: 0 })",
  ),
  // M1, M2, M3, M7
  inLimits(
    'a limit as a fixed window',
    LIMIT,
    'return numbers.burst > 0 ? findSlotInBucket(state, numbers, floor) : findSlotInWindow(state, numbers, floor)',
    `if (numbers.burst > 0) return fromBucket(state, numbers, floor)
  const start = Math.floor(floor / numbers.per) * numbers.per
  const inWindow = state.slots.filter((slot) => slot.at >= start).reduce((sum, slot) => sum + slot.count, 0)
  return inWindow + numbers.cost <= numbers.rate ? floor : start + numbers.per`,
  ),
  inLimits(
    'a window without slack',
    LIMIT,
    'numbers.per * stretch + computeSlack(numbers.per)',
    'numbers.per * stretch',
  ),
  inLimits(
    'a pause does not affect granted slots',
    LIMITS,
    'table.putTicket(giveSlot(work, limits, row))',
    'table.putTicket(row)',
  ),
  inLimits(
    'a slot that was moved counts as used',
    LIMITS,
    'table.putTicket(giveSlot(work, limits, row))',
    'const moved = giveSlot(work, limits, row)\n    table.putTicket({ ...moved, used: moved.at <= work.now })',
  ),
  inLimits(
    'calls that left late do not count once more',
    LIMITS,
    'chargeUsage(limits.get(name), act.numbers, work.now)',
    'limits.get(name)',
  ),
  inLimits('an old slot is used', LIMITS, 'known === undefined || isTicketExpired(known, work)', 'known === undefined'),
  inLimits(
    'used slots are forgotten with returned ones',
    LIMIT,
    'if (slot.at < now - computeSlack(numbers.per)) held += slot.count',
    'held += slot.count',
  ),
  inLimits('any slot can be given back', LIMITS, 'if (!newest) return false', ''),
  inLimits('calls that the API counted delay no call', LIMITS, 'if (cost > 0) changeLimit(', 'if (false) changeLimit('),
  inLimits('future slots count as seen by the API', LIMIT, ' && slot.at <= upto)', ')'),
  inLimits('a bucket ignores calls that the API counted', LIMIT, 'if (used <= 0) return 0', 'return 0'),
  // Bugs that only a file can have
  inSqlite('a placement is read without its cap', 'placements.ts', 'cap: Number(cap) }', 'cap: 0 }'),
  inSqlite(
    'numbers repeat after a crash',
    'store.ts',
    "this.#counter = number(this.#readMeta('counter'))",
    'this.#counter = 0',
  ),
  inSqlite(
    'identities in memory are forgotten in a crash',
    'write-behind-index.ts',
    'addToRange(findRange(this.#ranges, text(name)), text(name), number(n))',
    'void [name, n]',
  ),
  inSqlite(
    'placements that moved to the table are not counted',
    'placements.ts',
    'inTable: here.inTable + here.count, count: 0',
    'count: 0',
  ),
  inSqlite('new runs are forgotten in a crash', 'new-runs.ts', "if (list === '') return []", 'return []'),
  inSqlite(
    'lanes that were pushed back are forgotten in a crash',
    'deferred-lane-writes.ts',
    'of this.#sql.all(LISTS)',
    'of this.#sql.all(LISTS).slice(0, 0)',
  ),
  inSqlite(
    'an early alarm is taken for the deadline',
    'lanes.ts',
    'return lane !== undefined\n  }',
    'return false\n  }',
  ),
  inSqlite(
    'a lane whose deadline moved earlier is only listed',
    'deferred-lane-writes.ts',
    'lane.due >= alarm && ',
    '',
  ),
  inSqlite(
    'a list counts after its lane was written',
    'deferred-lane-writes.ts',
    'if (before.tail >= pushed.tail) return',
    '',
  ),
  inSqlite(
    'lists are thrown away while lanes need them',
    'deferred-lane-writes.ts',
    'first?.since ?? this.#next',
    'this.#next',
  ),
  inSqlite('a group with a ready lane is not noticed', 'group-order.ts', 'due <= groups.upTo ?', 'due < 0 ?'),
  inSqlite('a full group stays full', 'group-order.ts', '>= perGroup) {', '>= perGroup) {\n        queue.leave(group)'),
  inSqlite(
    'a group keeps its place after its turn',
    'group-order.ts',
    'queue.set({ ...known, served: turn })',
    'void turn',
  ),
  inSqlite(
    'a group that was looked at is gone',
    'group-order.ts',
    'of aside) queue.putBack(position)',
    'of aside) queue.delete(position.group)',
  ),
  inSqlite('a lease that is only listed wakes no process', 'lanes.ts', ', this.#newRuns.findFirstLeaseEnd(flow)', ''),
  inSqlite('a lease that is only listed is never over', 'new-runs.ts', ' || until <= now', ''),
  inSqlite(
    'a run that took a part comes back with all',
    'lanes.ts',
    'this.#placements.findUpTo(lane, 0, begun.upto)',
    'this.#placements.first(lane, 0, lane.waiting)',
  ),
  inSqlite(
    'a lane that gets a position among new runs is passed over',
    'lanes.ts',
    'if (lane.due <= (this.#newRunsUpTo.get(lane.flow) ?? 0)) this.#newRunsUpTo.delete(lane.flow)',
    '',
  ),
]
