// Why the batch of a run was closed: the arrivals of its events, replayed through the window of its flow (L3, L4).
import type { Millis } from '../clock.ts'
import { decodeEventTime } from '../model/event.ts'
import type { Flow } from '../model/flow.ts'
import { sampleWindow } from '../observe/flow-window.ts'
import type { RunRecord } from '../store/contract/index.ts'

/** `early`: somebody ran the lane at once, or the window was another one then. `none`: the flow has no window. */
type BatchClosing = 'quiet' | 'max' | 'full' | 'none' | 'early' | 'unknown'

export interface RunClosing {
  /** The arrival of its first and its last event. Undefined if an event has an id of its publisher. */
  readonly opened: Millis | undefined
  readonly latest: Millis | undefined
  /** When the window ended. */
  readonly due: Millis | undefined
  readonly closedBy: BatchClosing
}

/** The store draws the time of an arrival slightly after the id of the event. */
const TOLERANCE: Millis = 50

/** `describeClosing` reads the arrivals from the ids of the events, which contain the time. */
export function describeClosing(
  { events, started }: Pick<RunRecord, 'events' | 'started'>,
  flow: Flow | undefined,
): RunClosing {
  const known = events.flatMap((id) => decodeEventTime(id) ?? [])
  const arrivals = known.toSorted((one, other) => one - other)
  const [opened] = arrivals
  if (opened === undefined || arrivals.length < events.length) return UNKNOWN
  const seen = { opened, latest: arrivals.at(-1) }
  const window = flow === undefined ? undefined : sampleWindow(flow)
  if (window === undefined) return { ...UNKNOWN, ...seen }
  const { due, closedBy } = closeWindow(arrivals, window)
  if (closedBy === 'none') return { ...seen, due: opened, closedBy }
  return started + TOLERANCE < due ? { ...seen, due: undefined, closedBy: 'early' } : { ...seen, due, closedBy }
}

const UNKNOWN: RunClosing = { opened: undefined, latest: undefined, due: undefined, closedBy: 'unknown' }

interface Window {
  readonly quiet: Millis
  readonly max: Millis
  readonly maxEvents: number
}

function closeWindow(
  arrivals: readonly Millis[],
  { quiet, max, maxEvents }: Window,
): { readonly due: Millis; readonly closedBy: BatchClosing } {
  const opened = arrivals[0] ?? 0
  if (quiet === 0 || max === 0) return { due: opened, closedBy: 'none' }
  let due = Infinity
  let closedBy: BatchClosing = 'quiet'
  for (const [n, at] of arrivals.entries()) {
    // A passed deadline stays, and the event still joins.
    if (due <= at) break
    const isFull = n + 1 >= maxEvents
    closedBy = isFull ? 'full' : at + quiet < opened + max ? 'quiet' : 'max'
    due = isFull ? at : Math.min(at + quiet, opened + max)
    if (isFull) break
  }
  return { due, closedBy }
}
