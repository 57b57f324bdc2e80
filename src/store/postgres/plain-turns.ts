// `PlainTurns` settles plain runs and claims plain lanes in one statement (functions/settle-and-claim.sql). A run is plain if it
// was done at the first attempt; a lane is plain if it has nothing but waiting events. All other calls are for the rules.
import { ChurnMap } from '../../churn-map.ts'
import { NEVER, type Millis } from '../../clock.ts'
import { HEALTHY } from '../../model/lane.ts'
import type {
  ClaimedEvent,
  ClaimRequest,
  FlowDeadline,
  Hint,
  LeasedRun,
  SettleAndClaimCall,
  SettleAndClaimReply,
  Settlement,
} from '../contract/index.ts'
import { toFeedLane, type NewFeedEntry } from '../core/commit-context.ts'
import { getClaimableHealths } from '../core/settle-and-claim.ts'
import type { DirectResult } from '../core/store.ts'
import { SETTLE_AND_CLAIM } from './functions.ts'
import { encodeArray } from './row-bytes.ts'
import type { Db } from './row-cache.ts'
import type { ScanStarts } from './scan-start.ts'
import { bytes, escapeText, number, text, type Row } from './values.ts'

const CALL = `select * from ${SETTLE_AND_CLAIM.name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
/** The numbers of a call come from one block of the counter. */
const MAX_NUMBERS = 1_000
/** The process knows this many of its runs at most. It settles others by the rules. */
const MAX_KNOWN = 10_000

/** `KnownRun` is a plain run that this process has claimed. It is a class for the garbage collector (decision 13). */
class KnownRun {
  readonly id: string
  readonly flow: string
  readonly key: string

  constructor(id: string, flow: string, key: string) {
    this.id = id
    this.flow = flow
    this.key = key
  }
}

export interface PlainTurnsDependencies {
  readonly name: string
  readonly lockNamespace: string
  readonly now: () => Millis | undefined
  readonly scanStarts: ScanStarts
}

export class PlainTurns {
  readonly #dependencies: PlainTurnsDependencies
  readonly #known = new ChurnMap<number, KnownRun>()

  constructor(dependencies: PlainTurnsDependencies) {
    this.#dependencies = dependencies
  }

  /** `noteClaimed` remembers runs that the rules have claimed. Plain ones can be settled without the rules. */
  noteClaimed(leases: readonly LeasedRun[]): void {
    for (const lease of leases) {
      const isFirst = lease.tries === 0 && lease.lapses === 0 && lease.snoozedSince === 0 && lease.stateBase64 === ''
      if (isFirst && lease.rank === 0 && !lease.isDeadLetter && lease.parent === '' && lease.group === '')
        this.#know(lease)
    }
  }

  forgetRuns(runs: readonly { readonly token: number }[]): void {
    for (const { token } of runs) this.#known.delete(token)
  }

  #know({ token, runId, flow, key }: LeasedRun): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(token, new KnownRun(runId, flow, key))
  }

  isPlain({ outcome, publish, keep, attempt, token }: Settlement): boolean {
    const isDone = outcome.kind === 'done' && publish.length === 0 && keep === 0 && attempt === undefined
    return isDone && this.#known.has(token)
  }

  /** `mayDecide` returns whether the server may decide the call. */
  mayDecide({ settle, claim }: SettleAndClaimCall): boolean {
    const numbers = claim.reduce((sum, { maxRuns }) => sum + maxRuns, settle.length)
    return numbers <= MAX_NUMBERS && claim.every(isUsualClaim) && settle.every((one) => this.isPlain(one))
  }

  /** `run` returns undefined, and has written nothing, if the call needs the rules. */
  async run(db: Db, call: SettleAndClaimCall): Promise<DirectResult<SettleAndClaimReply> | undefined> {
    const starts = call.claim.map(({ flow }) => this.#dependencies.scanStarts.getStart(flow, HEALTHY))
    const snapshots = this.#dependencies.scanStarts.checkSnapshots(db)
    const [rows] = await Promise.all([db.query(CALL, this.#toValues(call, starts)), snapshots])
    const last = rows.at(-1)
    if (last === undefined) return undefined
    const [now, routes] = [number(last[5]), number(last[4])]
    this.#dependencies.scanStarts.setNow(now)
    const nextDeadlines = this.#readDeadlines(call, rows, starts)
    const claimed = toLeases(call.claim, rows, { now, name: this.#dependencies.name })
    const feedEntries = [...this.#endRuns(call, now), ...this.#beginRuns(claimed, now)]
    const hints: Hint[] = number(last[6]) === 0 ? [] : toDueHints(feedEntries)
    const settled = call.settle.map(() => 'ok' as const)
    return {
      reply: { now, routes, settled, unstored: [], claimed, crashed: [], nextDeadlines },
      feedEntries,
      hints,
    }
  }

  #toValues({ process, request, settle, claim, budget }: SettleAndClaimCall, starts: readonly Millis[]): unknown[] {
    const { lockNamespace, now, scanStarts } = this.#dependencies
    // All transactions lock lanes in the order of their ids.
    const ended = settle.toSorted((one, other) => (one.lane < other.lane ? -1 : 1))
    const id = escapeText(process)
    return [
      now() ?? null,
      `${lockNamespace}process/${id}`,
      id,
      request,
      encodeArray(
        'text',
        Array.from(ended, ({ lane }) => lane),
      ),
      encodeArray(
        'bigint',
        Array.from(ended, ({ token }) => token),
      ),
      encodeArray(
        'boolean',
        Array.from(ended, ({ whileRunning }) => whileRunning === 'requeue'),
      ),
      claim.map(({ flow }) => escapeText(flow)),
      claim.map(({ maxRuns }) => maxRuns),
      claim.map((one) => getClaimableHealths(one).reduce<number>((mask, health) => mask | (1 << health), 0)),
      claim.map(({ maxEvents }) => Math.min(maxEvents, NEVER)),
      claim.map(({ maxBytes }) => Math.min(maxBytes, NEVER)),
      claim.map(({ lease }) => lease),
      starts,
      scanStarts.isActive,
      Math.min(budget, NEVER),
    ]
  }

  #endRuns({ settle }: SettleAndClaimCall, at: Millis): readonly NewFeedEntry[] {
    return settle.flatMap(({ lane, token }) => {
      const run = this.#known.get(token)
      this.#known.delete(token)
      return run === undefined
        ? []
        : {
            kind: 'settled' as const,
            id: run.id,
            detail: 'done',
            at,
            ...toFeedLane({ lane, flow: run.flow, key: run.key }),
          }
    })
  }

  #beginRuns(leases: readonly LeasedRun[], at: Millis): readonly NewFeedEntry[] {
    return leases.map((lease) => {
      this.#know(lease)
      return { kind: 'claimed' as const, id: lease.runId, detail: '', at, ...toFeedLane(lease) }
    })
  }

  #readDeadlines(call: SettleAndClaimCall, rows: readonly Row[], starts: readonly Millis[]): readonly FlowDeadline[] {
    const { scanStarts } = this.#dependencies
    return rows.flatMap((row) => {
      const at = -number(row[0]) - 1
      const flow = call.claim[at]?.flow
      if (flow === undefined) return []
      if (scanStarts.isActive) scanStarts.recordFront(flow, HEALTHY, starts[at] ?? 0, toMillis(row[4]))
      return { flow, due: toMillis(row[5]) }
    })
  }
}

function isUsualClaim({ maxPerGroup, take, lease }: ClaimRequest): boolean {
  return maxPerGroup === undefined && take === 'all' && Number.isSafeInteger(lease)
}

function toMillis(value: Row[number] | undefined): Millis | undefined {
  return value === null || value === undefined ? undefined : number(value)
}

/** `toDueHints` is for settlements after which events wait in some lane. */
function toDueHints(entries: readonly NewFeedEntry[]): Hint[] {
  const flows = new Set(entries.flatMap(({ kind, flow }) => (kind === 'settled' ? flow : [])))
  return Array.from(flows, (flow) => ({ kind: 'due', flow }))
}

interface ClaimFacts {
  readonly now: Millis
  /** The name of the store, the prefix of its run ids. */
  readonly name: string
}

/** `toLeases` reads the claimed lanes, in the order of their deadlines: a row for each event. */
function toLeases(claims: readonly ClaimRequest[], rows: readonly Row[], facts: ClaimFacts): readonly LeasedRun[] {
  const leases: LeasedRun[] = []
  let events: ClaimedEvent[] = []
  let positions: number[] = []
  for (const row of rows) {
    const claim = claims[number(row[0]) - 1]
    if (claim === undefined) continue
    const token = number(row[4])
    if (leases.at(-1)?.token !== token) {
      events = []
      positions = []
      leases.push(toLease(claim, row, facts, events))
    }
    if (row[6] === null) continue
    // The one event that is kept in the lane's row comes first, wherever it is.
    const pos = number(row[6])
    const at = positions.findLastIndex((other) => other < pos) + 1
    positions.splice(at, 0, pos)
    events.splice(at, 0, toClaimedEvent(row))
  }
  return leases
}

function toLease(claim: ClaimRequest, row: Row, { now, name }: ClaimFacts, events: readonly ClaimedEvent[]): LeasedRun {
  const token = number(row[4])
  return {
    lane: text(row[1]),
    flow: claim.flow,
    key: Buffer.from(bytes(row[2])).toString(),
    tenant: text(row[3]),
    group: '',
    runId: `${name}-${token.toString(36)}`,
    parent: '',
    token,
    rank: 0,
    isDeadLetter: false,
    replay: '',
    tries: 0,
    lapses: 0,
    failingSince: 0,
    snoozedSince: 0,
    stateBase64: '',
    due: number(row[5]),
    until: now + claim.lease,
    events,
    superseded: 0,
  }
}

function toClaimedEvent(row: Row): ClaimedEvent {
  return {
    id: text(row[7]),
    source: text(row[8]),
    type: text(row[9]),
    time: number(row[10]),
    tenant: text(row[11]),
    subject: text(row[12]),
    attributes: text(row[13]),
    arrived: number(row[14]),
    body: bytes(row[15]),
  }
}
