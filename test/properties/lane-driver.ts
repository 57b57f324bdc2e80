// One lane as a store keeps it, with separate books: which events wait, run, are dead or are done, and what happened to the run.
// The books do not use the lane's state, so that a test can compare the two after every step.
import type { Millis } from '../../src/clock.ts'
import {
  beginRun,
  beginDeadLetterRun,
  countEventsToTake,
  decideNextClaim,
  resumeRun,
  type ClaimCaps,
  type PlacementToTake,
} from '../../src/model/claim.ts'
import { isLiveRun, type Lane, type TransitionContext, type Rank } from '../../src/model/lane.ts'
import { computeCap, placeEvent, type PlacementParameters } from '../../src/model/place.ts'
import {
  dissolveRun,
  endRun,
  failAttempt,
  deferRun,
  canDissolveRun,
  scheduleNextAttempt,
  snoozeRun,
  type RunEndOptions,
} from '../../src/model/settle.ts'
import {
  queueDeadLetter,
  steer,
  unblockLane,
  unqueueDeadLetter,
  withdrawEvents,
  type SteerAction,
} from '../../src/model/steer.ts'
import { counter, freshLane, START } from './support.ts'

export interface Letter {
  readonly id: string
  readonly rows: readonly PlacementToTake[]
  blocks: boolean
  state: 'dead' | 'queued' | 'running'
}

/** What the books know about the run in the lane. */
export interface RunNotes {
  readonly id: string
  readonly deadLetter: Letter | undefined
  readonly rank: Rank
  readonly rows: readonly PlacementToTake[]
  readonly leftOver: boolean
  until: Millis
  running: boolean
  lapses: number
  tries: number
  failed: boolean
  frozen: boolean
}

export type Ending =
  | { readonly kind: 'done' | 'dropped' | 'released' | 'cancelled' }
  /** Cancelled if a cancel was requested, otherwise done. */
  | { readonly kind: 'obey' }
  | { readonly kind: 'retry' | 'snoozed'; readonly after: Millis }
  | { readonly kind: 'dead'; readonly block: boolean }

export class LaneDriver implements TransitionContext {
  lane: Lane = freshLane()
  now: Millis = START
  readonly draw = counter()
  live: PlacementToTake[] = []
  replays: PlacementToTake[] = []
  deadLetters: Letter[] = []
  run: RunNotes | undefined
  placed = 0
  ended = 0
  #runs = 0

  place(placement: PlacementParameters): void {
    this.lane = placeEvent(this.lane, placement, this)
    const rows = placement.rank === 0 ? this.live : this.replays
    rows.push({ pos: this.lane.tail, size: placement.size, cap: computeCap(placement, this.now) })
    this.placed++
  }

  wait(ms: Millis): void {
    this.now += ms
  }

  /** Claims the lane if it is due, and returns the kind of the run. */
  claim(caps: ClaimCaps): ReturnType<typeof decideNextClaim>['kind'] | undefined {
    if (this.lane.due > this.now) return undefined
    const next = decideNextClaim(this.lane, this.now)
    const turn = { now: this.now, draw: this.draw, token: this.draw(), caps }
    const until = Math.ceil(this.now + caps.lease)
    if (next.kind === 'take') this.#take(next.rank, caps, until, turn.token)
    else if (next.kind === 'dead-letter') {
      const deadLetter = this.deadLetters.find(({ state }) => state === 'queued')
      if (deadLetter === undefined) throw new Error('No dead letter is queued.')
      deadLetter.state = 'running'
      const rows = deadLetter.rows
      const bytes = sizeOf(rows)
      const queued = { id: deadLetter.id, parent: '', replay: '', events: rows.length, bytes }
      this.lane = beginDeadLetterRun(this.lane, queued, turn)
      this.run = { ...fresh(deadLetter.id, until), deadLetter, rank: 0, rows, leftOver: false }
    } else if (this.run !== undefined) {
      if (this.run.running) [this.run.lapses, this.run.frozen] = [this.run.lapses + 1, true]
      if (next.kind === 'crashed') {
        this.#over({ ...this.lane, run: next.run }, { whileRunning: 'window', keep: 0 }, 'dead')
      } else {
        this.lane = resumeRun(this.lane, next.run, turn)
        ;[this.run.running, this.run.until] = [true, until]
      }
    }
    return next.kind
  }

  #take(rank: Rank, caps: ClaimCaps, until: Millis, token: number): void {
    const waiting = rank === 0 ? this.live : this.replays
    const rows = caps.take === 'last' ? waiting.slice(-1) : waiting.slice(0, countEventsToTake(waiting, caps))
    const superseded = caps.take === 'all' ? [] : waiting.filter((row) => !rows.includes(row))
    const rest = waiting.filter((row) => !rows.includes(row) && !superseded.includes(row))
    const id = `r${++this.#runs}`
    const context = { now: this.now, draw: this.draw, token, caps }
    this.lane = beginRun(this.lane, id, { rank, replay: '', rows, superseded }, context)
    this.run = { ...fresh(id, until), deadLetter: undefined, rank, rows, leftOver: rank === 0 && rest.length > 0 }
    this.ended += superseded.length
    if (rank === 0) this.live = rest
    else this.replays = rest
  }

  /** The holder of the live token settles the run; no other token gets here. */
  settle(how: Ending, end: RunEndOptions): boolean {
    const { run: notes, lane } = this
    const ending = how.kind === 'obey' ? ({ kind: lane.run?.cancel === true ? 'cancelled' : 'done' } as const) : how
    const run = lane.run
    if (run === undefined || notes === undefined || !isLiveRun(run, this.now)) return false
    const put = (next: typeof run, after: Millis): void => {
      this.lane = scheduleNextAttempt(lane, next, this.now + after, this)
      ;[notes.running, notes.frozen, notes.until] = [false, true, this.now + after]
    }
    if (ending.kind === 'retry') {
      put(failAttempt(run, { at: this.now, ms: 1, error: 'no' }, this.now), ending.after)
      ;[notes.tries, notes.failed] = [notes.tries + 1, true]
    } else if (ending.kind === 'snoozed') {
      put(snoozeRun(run, '', this.now), ending.after)
      notes.failed = false
    } else if (ending.kind === 'released' || (ending.kind === 'cancelled' && !canDissolveRun(run, this.now))) {
      put(deferRun(run, ''), 0)
    } else if (ending.kind === 'cancelled') {
      this.lane = dissolveRun(lane, run, end, this)
      this.live.unshift(...notes.rows)
      this.run = undefined
    } else this.#over(lane, end, ending.kind === 'dead' ? ending : 'gone')
    return true
  }

  #over(lane: Lane, end: RunEndOptions, how: 'gone' | 'dead' | { readonly block: boolean }): void {
    const notes = this.run
    if (notes === undefined) return
    this.run = undefined
    let blocks = lane.blocks
    if (how === 'gone') {
      this.ended += notes.rows.length
      this.deadLetters = this.deadLetters.filter((deadLetter) => deadLetter !== notes.deadLetter)
      if (notes.deadLetter?.blocks === true) blocks--
    } else {
      const block = typeof how === 'object' && how.block
      const deadLetter: Letter = notes.deadLetter ?? { id: notes.id, rows: notes.rows, blocks: false, state: 'dead' }
      if (block && !deadLetter.blocks) blocks++
      deadLetter.blocks ||= block
      deadLetter.state = 'dead'
      if (notes.deadLetter === undefined) this.deadLetters.push(deadLetter)
    }
    this.lane = endRun({ ...lane, blocks }, end, this)
  }

  steer(act: SteerAction): boolean {
    const next = steer(this.lane, act, this)
    if (next === undefined) return false
    this.lane = next
    if (act.kind === 'run-now' && this.run !== undefined) this.run.until = this.now
    return true
  }

  /** An operator's action on the first dead letter that allows it. */
  deadLetter(act: 'retry' | 'drop' | 'unblock'): void {
    const wanted = (deadLetter: Letter): boolean =>
      act === 'unblock'
        ? deadLetter.blocks
        : act === 'retry'
          ? deadLetter.state === 'dead'
          : deadLetter.state !== 'running'
    const deadLetter = this.deadLetters.find(wanted)
    if (deadLetter === undefined) return
    if (act === 'retry') {
      this.lane = queueDeadLetter(this.lane, this)
      deadLetter.state = 'queued'
      return
    }
    if (deadLetter.blocks) this.lane = unblockLane(this.lane, this)
    deadLetter.blocks = false
    if (act === 'unblock') return
    if (deadLetter.state === 'queued') this.lane = unqueueDeadLetter(this.lane, this)
    this.deadLetters = this.deadLetters.filter((one) => one !== deadLetter)
    this.ended += deadLetter.rows.length
  }

  /** Drops all waiting events. */
  drop(): void {
    const gone = { waiting: this.live.length, bytes: sizeOf(this.live), replays: this.replays.length }
    this.lane = withdrawEvents(this.lane, gone, this)
    this.ended += gone.waiting + gone.replays
    ;[this.live, this.replays] = [[], []]
  }
}

function fresh(id: string, until: Millis): Omit<RunNotes, 'deadLetter' | 'rank' | 'rows' | 'leftOver'> {
  return { id, until, running: true, lapses: 0, tries: 0, failed: false, frozen: false }
}

export function sizeOf(rows: readonly PlacementToTake[]): number {
  return rows.reduce((sum, row) => sum + row.size, 0)
}
