// The picture of one lane as marks between two times. A mark knows nothing of the present: the page clips what was at
// the left of the now line and what will be at its right, so one picture stays right while time passes.
import type { Lane } from './types.ts'
import { shownState } from './states.ts'
import { stepsOf } from './water.ts'

/** A time without an end lies this far away; the frame clips it. */
export const FOREVER = Infinity

export type Mark =
  | {
      readonly is: 'bar'
      readonly class: string
      readonly from: number
      readonly to: number
      readonly y: number
      readonly height: number
      readonly radius?: number
      /** Short bars stay visible. */
      readonly least?: number
    }
  | { readonly is: 'line'; readonly class: string; readonly from: number; readonly to: number; readonly y: number }
  | { readonly is: 'rise'; readonly class: string; readonly at: number; readonly y: number; readonly to: number }
  | { readonly is: 'drop'; readonly class: string; readonly at: number; readonly y: number }
  | { readonly is: 'gate'; readonly tone: string; readonly at: number; readonly post?: boolean }
  | { readonly is: 'text'; readonly class: string; readonly at: number; readonly text: string; readonly y: number }

/** What was (drawn left of the now line) and what will be (right of it). */
export interface Marks {
  readonly past: readonly Mark[]
  readonly ahead: readonly Mark[]
}

/** A run that ended while the page was open. */
export interface SeenRun {
  readonly from: number
  readonly to: number
  readonly tone: 'run' | 'fail' | 'still'
}

/** The channel of a lane, 38 px high. */
export const FLOOR = 32
export const TOP = 8
const FULL = FLOOR - TOP
const MIDDLE = 20
const HALF = 13

interface Build {
  readonly past: Mark[]
  readonly ahead: Mark[]
}

/** `marksOf` draws a lane. Runs that ended since the page was opened are known from the stream. */
export function marksOf(lane: Lane, seen: readonly SeenRun[] = []): Marks {
  const build: Build = { past: [], ahead: [] }
  for (const { from, to, tone } of seen) {
    build.past.push({ ...bar(tone === 'run' ? 'ran' : `ran ${tone}`, from, to), least: 3 })
  }
  const state = shownState(lane)
  if (state === 'held') addHold(build, lane)
  if (state === 'blocked') addBlock(build, lane)
  if (lane.run !== undefined) addRun(build, lane, lane.run)
  addWater(build, lane)
  if (lane.run === undefined && (state === 'waiting' || state === 'ready')) addGate(build, lane)
  return build
}

function bar(name: string, from: number, to: number, [y, height] = [TOP, FULL]): Extract<Mark, { is: 'bar' }> {
  return { is: 'bar', class: name, from, to, y, height }
}

/** `openedAt` is when the first event that waits or runs arrived. */
export function openedAt({ arrivals }: Lane): number | undefined {
  return arrivals?.[0]?.at
}

function addHold({ past, ahead }: Build, { hold }: Lane): void {
  const until = hold?.until ?? FOREVER
  past.push(bar('holding', -FOREVER, until))
  ahead.push(bar('holding', -FOREVER, until))
  if (hold?.until !== undefined) ahead.push({ is: 'gate', tone: 'still', at: hold.until })
}

/** A blocked lane waits for a dead letter, which has no time: the wall itself stands on the now line. */
function addBlock({ past, ahead }: Build, lane: Lane): void {
  past.push(bar('blocking', openedAt(lane) ?? -FOREVER, FOREVER))
  ahead.push(bar('blocking', -FOREVER, FOREVER))
}

function addRun(build: Build, lane: Lane, run: NonNullable<Lane['run']>): void {
  const { past, ahead } = build
  const isCrowded = lane.waiting > 0
  const state = shownState(lane)
  for (const { at, ms } of run.attempts) past.push({ ...bar('failed', at - ms, at), radius: 1.5, least: 4 })
  if (state === 'running' || state === 'lapsed') {
    const height = isCrowded ? HALF : FULL
    const began = lastFailure(run) ?? run.started
    if (began > run.started) past.push({ is: 'line', class: 'backoff', from: run.started, to: began, y: MIDDLE })
    const end = state === 'lapsed' ? run.until : FOREVER
    past.push({ ...bar(state === 'lapsed' ? 'ran fail' : 'running', began, end, [TOP, height]), radius: 2 })
    if (state === 'running') ahead.push({ ...bar('lease', began, run.until, [TOP, height]), radius: 2 })
    return
  }
  if (state === 'limited') {
    const from = lastFailure(run) ?? run.started
    for (const layer of [past, ahead])
      layer.push(bar('limited', from, run.until), bar('limited-marks', from, run.until))
  } else {
    const name = state === 'retrying' ? 'backoff' : 'backoff still'
    const from = run.attempts[0]?.at ?? run.started
    const line: Mark = { is: 'line', class: name, from, to: run.until, y: MIDDLE }
    past.push(line)
    ahead.push(line)
  }
  const tone = state === 'limited' ? 'limit' : state === 'retrying' ? 'fail' : 'still'
  past.push({ is: 'gate', tone, at: run.until })
  ahead.push({ is: 'gate', tone, at: run.until })
}

function lastFailure(run: NonNullable<Lane['run']>): number | undefined {
  return run.attempts.at(-1)?.at
}

/** The time at which the waiting events run at the earliest, as far as the lane knows one. */
function endOfWindow(lane: Lane): number {
  if (lane.run !== undefined) return FOREVER
  return lane.window ?? lane.due ?? FOREVER
}

function addWater({ past, ahead }: Build, lane: Lane): void {
  const arrivals = lane.arrivals ?? []
  const begun = lane.run?.started
  if (begun !== undefined) {
    const taken = arrivals.filter(({ inRun }) => inRun).map(({ at }) => Math.min(at, begun))
    addSteps(past, stepsOf(taken, lane.run?.events ?? 0, begun), ' gone')
  }
  const waiting = arrivals.filter(({ inRun }) => !inRun).map(({ at }) => at)
  if (lane.waiting === 0) return
  const highest = lane.run === undefined ? undefined : 10
  const known = waiting.length === 0 ? [openedAt(lane) ?? -FOREVER] : waiting
  const end = endOfWindow(lane)
  const steps = stepsOf(known, lane.waiting, Math.max(end, (known.at(-1) ?? 0) + 1), highest)
  addSteps(past, steps, '')
  const last = steps.at(-1)
  // What follows a block is unknown, so nothing is drawn after the wall.
  if (last === undefined || lane.state === 'blocked') return
  const y = FLOOR - last.height
  ahead.push(bar('water to-come', last.from, last.to, [y, last.height]))
  ahead.push({ is: 'line', class: 'surface to-come', from: last.from, to: last.to, y })
}

function addSteps(marks: Mark[], steps: ReturnType<typeof stepsOf>, kind: string): void {
  let below = FLOOR
  for (const { from, to, height } of steps) {
    const y = FLOOR - height
    marks.push(bar(`water${kind}`, from, to, [y, height]))
    marks.push({ is: 'line', class: `surface${kind}`, from, to, y })
    marks.push({ is: 'rise', class: `surface${kind}`, at: from, y: below, to: y })
    below = y
  }
  for (const { from, height } of steps) marks.push({ is: 'drop', class: `drop${kind}`, at: from, y: FLOOR - height })
}

/** The gate, how far more events may push it, and the chevrons of a lane whose gate has met the now line. */
function addGate({ past, ahead }: Build, lane: Lane): void {
  const { due, cap } = lane
  if (due === undefined) return
  const high = stepsOf([0], lane.waiting, 1)[0]?.height ?? 0
  past.push(bar('late', due, FOREVER))
  past.push(bar('late-water', due, FOREVER, [FLOOR - high, high]))
  past.push({ is: 'line', class: 'late-top', from: due, to: FOREVER, y: FLOOR - high })
  past.push(bar('late-marks', due, FOREVER))
  past.push({ is: 'gate', tone: 'ready', at: due })
  // The gate of a ready lane stands still.
  if (cap !== undefined && cap > due && lane.state !== 'ready') {
    ahead.push(bar('slide', due, cap, [FLOOR - 11, 11]))
    ahead.push({ is: 'gate', tone: 'cap', at: cap, post: true })
  }
  ahead.push({ is: 'gate', tone: '', at: due })
}

/** `withNews` lets the events that joined since `before` drop in, and the gate open if a run has begun since. */
export function withNews(marks: readonly Mark[], before: Lane, lane: Lane): readonly Mark[] {
  const known = before.arrivals?.at(-1)?.at ?? -FOREVER
  const run = lane.run?.state === 'running' && lane.run.id !== before.run?.id ? lane.run : undefined
  const moving = marks.map((mark): Mark => {
    if (mark.is === 'drop' && before !== lane && mark.at > known) return { ...mark, class: `${mark.class} fresh` }
    if (mark.is === 'bar' && mark.class === 'running' && run !== undefined) return { ...mark, class: 'running fresh' }
    return mark
  })
  return run === undefined ? moving : [...moving, { is: 'gate', tone: 'opening', at: run.started }]
}
