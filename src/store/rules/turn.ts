// turn: settles, then claims, in one commit. Ready lanes are served by (deadline, ticket); groups take turns (L5, L5g).
import type { Millis } from '../../clock.ts'
import type { Identity, LaneId } from '../../model/identity.ts'
import { SluiceError } from '../../errors.ts'
import { begin, beginLetter, cut, nextTurn, resume, type Turn } from '../../model/claim.ts'
import { FAILING, HEALTHY, isLive, SUSPECT, type Lane, type Line, type Rank } from '../../model/lane.ts'
import type { Appended, Claim, Head, KeptOut, Lease, Settled, TurnCall } from '../contract/index.ts'
import { BodyBudget, handed, leasesOf, type Handed } from './leases.ts'
import { bury, endPurged, record, settle } from './settle.ts'
import type { PlaceRow } from './tables.ts'
import type { Work } from './work.ts'

export interface Turned {
  readonly settled: readonly Settled[]
  readonly keptOut: readonly KeptOut[]
  readonly claimed: readonly Lease[]
  readonly crashed: readonly { readonly lane: string; readonly run: string }[]
  readonly heads: readonly Head[]
}

interface Remembered {
  readonly settled: readonly Settled[]
  /** Left out when there are none, as nearly always. */
  readonly keptOut?: readonly KeptOut[]
  readonly claimed: readonly ClaimedBriefly[]
  readonly crashed: Turned['crashed']
}

/** Without names, for it is written with every turn. */
type ClaimedBriefly = readonly [lane: Lease['lane'], token: number, due: Millis, superseded: number]

export function settleAndClaim(work: Work, call: TurnCall): Turned | SluiceError {
  const last = work.tables.small.process(call.process)
  const budget = new BodyBudget(call.budget)
  if (last !== undefined && call.request <= last.request) {
    if (call.request < last.request)
      return new SluiceError('REQUEST_STALE', `Turn ${call.request} came after ${last.request}.`)
    return repeated(work, call, JSON.parse(last.answer) as Remembered, budget)
  }
  work.tables.expect?.(...namedIn(call))
  const ended = call.settle.map((one) => settle(work, one, call.routes))
  const settled = ended.map((one) => one.settled)
  const keptOut = ended.flatMap(({ published }, at) => keptOutOf(at, published))
  const crashed: { lane: string; run: string }[] = []
  const served = call.claim.map((claim) => serve(work, claim, budget, crashed))
  const claimed = served.flat()
  const kept: Remembered = {
    settled,
    ...(keptOut.length > 0 && { keptOut }),
    claimed: claimed.map(({ lane, token, due, superseded }) => [lane, token, due, superseded]),
    crashed,
  }
  work.tables.small.putProcess(call.process, { at: work.now, request: call.request, answer: JSON.stringify(kept) })
  const isFull = (claim: Claim, at: number): boolean => claim.slots > 0 && served[at]?.length === claim.slots
  return { settled, keptOut, claimed, crashed, heads: headsOf(work, call, isFull) }
}

/** All that the settlements are about, before the first is decided. */
function namedIn({ settle: ended }: TurnCall): readonly [lanes: readonly LaneId[], identities: readonly Identity[]] {
  const published = ended.flatMap(({ publish }) => publish)
  const placed = published.flatMap(({ places }) => places.map(({ lane }) => lane))
  return [[...ended.map(({ lane }) => lane), ...placed], published.map(({ identity }) => identity)]
}

function keptOutOf(at: number, published: readonly Appended[]): readonly KeptOut[] {
  return published.flatMap((result, publish) =>
    result.kind === 'stored' || result.kind === 'routes-old' ? [] : [{ settle: at, publish, result }],
  )
}

/** Whoever has all the runs that he asked for will ask again: until then nobody has to know what comes next. */
function headsOf(work: Work, call: TurnCall, isFull: (claim: Claim, at: number) => boolean): readonly Head[] {
  return call.claim.map((claim, at) => {
    const { flow } = claim
    return { flow, due: isFull(claim, at) ? work.now : work.tables.lanes.head(flow, linesOf(claim)) }
  })
}

/** What a claim could not take anyway must not hide what comes after it. */
function linesOf({ slots, failing, suspects }: Claim): readonly Line[] {
  if (slots === 0) return LINES
  return LINES.filter((line) => line === HEALTHY || (line === FAILING ? failing : suspects) > 0)
}

/** The reply was lost: the same answer again, with those leases that are still live (L12). */
function repeated(work: Work, call: TurnCall, kept: Remembered, budget: BodyBudget): Turned {
  const live = kept.claimed.flatMap(([id, token, due, superseded]) => {
    const lane = work.tables.lanes.get(id)
    const isSame = lane?.run !== undefined && lane.run.token === token && isLive(lane.run, work.now)
    return isSame ? [handed(work, lane, due, superseded)] : []
  })
  const claimed = leasesOf(work, live, budget)
  const { settled, keptOut = [], crashed } = kept
  return { settled, keptOut, claimed, crashed, heads: headsOf(work, call, () => false) }
}

/** How many lanes of each line a call may still take. */
class Quota {
  #slots: number
  readonly #byLine: Map<Line, number>

  constructor(claim: Claim) {
    this.#slots = claim.slots
    this.#byLine = new Map([
      [HEALTHY, claim.slots],
      [FAILING, claim.failing],
      [SUSPECT, claim.suspects],
    ])
  }

  left(line: Line): number {
    return Math.max(0, Math.min(this.#slots, this.#byLine.get(line) ?? 0))
  }

  use(line: Line): void {
    this.#slots--
    this.#byLine.set(line, (this.#byLine.get(line) ?? 0) - 1)
  }

  get slots(): number {
    return Math.max(0, this.#slots)
  }

  get lines(): readonly Line[] {
    return LINES.filter((line) => this.left(line) > 0)
  }
}

const LINES: readonly Line[] = [HEALTHY, FAILING, SUSPECT]

function serve(
  work: Work,
  claim: Claim,
  budget: BodyBudget,
  crashed: { lane: string; run: string }[],
): readonly Lease[] {
  if (work.tables.small.pauseOf(claim.flow) !== undefined) return []
  const quota = new Quota(claim)
  const next =
    claim.perGroup === undefined ? inOneLine(work, claim, quota) : inGroups(work, claim, quota, claim.perGroup)
  const given: Handed[] = []
  for (let lane = next.pick(); lane !== undefined; lane = next.pick()) {
    const line = lane.line
    const turn = give(work, lane, claim)
    if ('lane' in turn) {
      quota.use(line)
      given.push(turn)
      work.noteOf(lane, 'claimed', '', turn.lane.run?.id ?? '')
      next.served(lane)
    } else {
      if (turn.crashed !== '') {
        crashed.push({ lane: lane.id, run: turn.crashed })
        work.noteOf(lane, 'settled', 'dead', turn.crashed)
      }
      // The lane stands elsewhere now, perhaps ready again.
      next.moved()
    }
  }
  return leasesOf(work, given, budget)
}

interface Picker {
  pick(): Lane | undefined
  served(lane: Lane): void
  moved(): void
}

/** By (deadline, ticket) over the lines that have slots left. */
function inOneLine(work: Work, claim: Claim, quota: Quota): Picker {
  let ahead: Lane[] | undefined
  return {
    pick() {
      ahead ??= readyOf(work, claim.flow, quota)
      for (let lane = ahead.shift(); lane !== undefined; lane = ahead.shift())
        if (quota.left(lane.line) > 0) return lane
      return undefined
    },
    served() {},
    moved() {
      ahead = undefined
    },
  }
}

function readyOf(work: Work, flow: string, quota: Quota): Lane[] {
  const lines = quota.lines.map((line) => work.tables.lanes.ready({ flow, line, now: work.now, n: quota.left(line) }))
  return lines.length === 1 ? [...(lines[0] ?? [])] : lines.flat().toSorted(byTurn)
}

function byTurn(one: Lane, other: Lane): number {
  return one.due - other.due || one.ticket - other.ticket
}

/** The group that was served longest ago goes first; each group's own lanes keep their order (L5g). */
function inGroups(work: Work, claim: Claim, quota: Quota, perGroup: number): Picker {
  const { lanes } = work.tables
  const { flow } = claim
  let ahead: { readonly heads: Lane[]; readonly lines: number } | undefined
  return {
    pick() {
      const { lines, slots } = quota
      if (slots === 0) return undefined
      // One each, then the next round. A line that has no slots left changes which lane is a group's first.
      if (ahead === undefined || ahead.heads.length === 0 || ahead.lines !== lines.length) {
        const heads = lanes.inTurn({ flow, lines, now: work.now, perGroup, n: slots })
        ahead = { heads: [...heads], lines: lines.length }
      }
      return ahead.heads.shift()
    },
    served(lane) {
      lanes.tookTurn(lane, work.draw(), work.now)
    },
    moved() {
      ahead = undefined
    },
  }
}

/** One lane's turn: a run, or what happened instead. */
function give(work: Work, lane: Lane, claim: Claim): Handed | { readonly crashed: string } {
  if (lane.run?.purged === true) {
    work.save(endPurged(work, lane, lane.run, { whileRunning: 'window', keep: 0 }))
    return { crashed: '' }
  }
  const next = nextTurn(lane, work.now)
  const turn = { now: work.now, draw: work.draw, token: work.draw(), caps: claim }
  switch (next.kind) {
    case 'crashed': {
      const call = { whileRunning: 'window', keep: 0 } as const
      work.save(bury(work, lane, next.run, { call, reason: 'crashed', block: claim.block }))
      return { crashed: next.run.id }
    }
    case 'resume': {
      const started = resume(lane, next.run, turn)
      work.tables.lanes.put(started)
      return handed(work, started, lane.due, 0)
    }
    case 'letter':
      return takeLetter(work, lane, turn)
    case 'take':
      return takeWaiting(work, lane, next.rank, turn)
  }
}

function takeLetter(work: Work, lane: Lane, turn: Turn): Handed {
  const letter = work.tables.letters.nextQueued(lane.id)
  if (letter === undefined)
    throw new SluiceError('STORE_DAMAGED', `Lane ${lane.id} has a queued dead letter that is not there.`)
  work.tables.letters.put({ ...letter, state: 'running' })
  const bytes = letter.places.reduce((sum, place) => sum + place.size, 0)
  const { id, parent, places } = letter
  const started = beginLetter(lane, { id, parent, events: places.length, bytes }, turn)
  work.tables.lanes.put(started)
  return handed(work, started, lane.due, 0)
}

function takeWaiting(work: Work, lane: Lane, rank: Rank, turn: Turn & { readonly caps: Claim }): Handed {
  const { caps } = turn
  const waits = rank === 0 ? lane.waiting : lane.replays
  const rows = work.tables.places.first(lane, rank, caps.take === 'all' ? caps.maxEvents : waits)
  const taken = caps.take === 'last' ? rows.slice(-1) : rows.slice(0, cut(rows, caps))
  const superseded = caps.take === 'all' ? [] : rows.filter((row) => !taken.includes(row))
  const started = begin(lane, work.runId(), { rank, rows: taken, superseded }, turn)
  if (superseded.length > 0) supersede(work, started, rank, superseded)
  const isFirstInLine = caps.perGroup === undefined
  if (isFirstInLine && rank === 0 && superseded.length === 0) work.tables.lanes.begun(lane, started)
  else work.tables.lanes.put(started)
  return { lane: started, due: lane.due, superseded: superseded.length, places: taken }
}

/** Events that `take` passed over end here, under a record of their own that names the run that took their place. */
function supersede(work: Work, lane: Lane, rank: Rank, places: readonly PlaceRow[]): void {
  const positions = places.map((row) => row.pos)
  work.tables.places.remove(lane, rank, positions)
  const run = lane.run
  if (run === undefined) return
  record(work, lane, { ...run, id: work.runId(), parent: run.id }, { kind: 'superseded', reason: '', places })
}
