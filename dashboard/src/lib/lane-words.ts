// What a lane waits for, in the few words of a table and of the picture.
import { countdown, ordinal, plural, visible } from './format.ts'
import { shownState } from './states.ts'
import type { FlowStatus, Lane } from './types.ts'

export interface Next {
  /** What happens next, with its time. */
  readonly text: string
  readonly detail: string
}

/** `nextOf` says what happens next to a lane. The flow adds why a ready lane does not run yet. */
export function nextOf(lane: Lane, now: number, flow?: FlowStatus): Next {
  const { run } = lane
  switch (shownState(lane)) {
    case 'ready':
      return { text: `Ready for ${countdown(now - (lane.due ?? now))}`, detail: whyReady(lane, flow) }
    case 'waiting':
      return waiting(lane, now, flow)
    case 'running':
      return {
        text: `Running for ${countdown(now - (run?.started ?? now))}`,
        detail: run === undefined ? '' : runningDetail(lane, run),
      }
    case 'lapsed':
      return { text: `Lease expired ${countdown(now - (run?.until ?? now))} ago`, detail: 'runs again, same events' }
    case 'limited':
      return {
        text: inTime('Slot', run?.until ?? lane.due, now),
        detail: `deferred by ${visible(lane.deferredBy ?? 'a limit')}`,
      }
    case 'retrying':
      return { text: inTime('Next attempt', run?.until ?? lane.due, now), detail: retryDetail(run) }
    case 'snoozed':
      return { text: inTime('Runs again', run?.until ?? lane.due, now), detail: 'snoozed by its handler' }
    case 'blocked':
      return {
        text: 'Blocked',
        detail: lane.blocks > 1 ? `by ${plural(lane.blocks, 'dead letter')}` : 'by a dead letter',
      }
    case 'held':
      return held(lane, now)
    case 'idle':
      return { text: 'Idle', detail: 'no event waits' }
  }
}

function inTime(what: string, at: number | undefined, now: number): string {
  if (at === undefined) return what
  return at <= now ? `${what} now` : `${what} in ${countdown(at - now)}`
}

function waiting(lane: Lane, now: number, flow: FlowStatus | undefined): Next {
  const { due, cap } = lane
  if (due === undefined) return { text: 'Waiting', detail: '' }
  // The gate has met the now line, and the server's answer is on its way.
  if (due <= now) return { text: `Ready for ${countdown(now - due)}`, detail: whyReady(lane, flow) }
  const detail =
    cap === undefined
      ? 'later if more events arrive'
      : cap <= due
        ? 'whatever else arrives'
        : `at the latest in ${countdown(cap - now)}`
  return { text: `Due in ${countdown(due - now)}`, detail }
}

function whyReady(lane: Lane, flow: FlowStatus | undefined): string {
  const rank = lane.rank === undefined ? '' : `${ordinal(lane.rank)} in line`
  const why =
    flow === undefined
      ? ''
      : flow.paused !== undefined
        ? 'the flow is paused'
        : flow.declared === false
          ? 'no process serves the flow'
          : flow.concurrency !== undefined && flow.running >= flow.concurrency
            ? flow.concurrency === 1
              ? 'the permit is taken'
              : `all ${flow.concurrency} permits are taken`
            : ''
  return [rank, why].filter((text) => text !== '').join('; ')
}

function runningDetail(lane: Lane, run: NonNullable<Lane['run']>): string {
  const attempt = `attempt ${run.tries + 1}`
  if (run.cancel) return `${attempt}, asked to cancel`
  if (lane.waitsFor === undefined) return `${attempt}, ${plural(run.events, 'event')}`
  return `${attempt}, slot of ${visible(lane.waitsFor.limit)} in ${countdown(lane.waitsFor.in)}`
}

function retryDetail(run: Lane['run']): string {
  const error = run?.attempts.at(-1)?.error ?? ''
  const attempt = `attempt ${(run?.tries ?? 0) + 1}`
  return error === '' ? attempt : `${attempt}, ${visible(error)}`
}

function held({ hold }: Lane, now: number): Next {
  const by =
    hold === undefined ? '' : `by ${visible(hold.by)}${hold.reason === '' ? '' : `: “${visible(hold.reason)}”`}`
  const until = hold?.until
  return { text: until === undefined ? 'Held' : `Held for ${countdown(until - now)} more`, detail: by }
}

/** What is written beside the marks: at the next gate, right of the now line, or at the right edge. */
export interface Labels {
  readonly beside?: { readonly at: number; readonly tone: string; readonly text: string }
  readonly atNow?: { readonly tone: string; readonly text: string }
  readonly latest?: { readonly at: number; readonly text: string }
}

export function labelsOf(lane: Lane, now: number): Labels {
  const { run, due, cap } = lane
  const until = (at: number): string => countdown(at - now)
  switch (shownState(lane)) {
    case 'ready':
      return lane.rank === undefined ? {} : { atNow: { tone: 'ready', text: `${ordinal(lane.rank)} in line` } }
    case 'waiting': {
      if (due === undefined || due <= now) return {}
      const latest = cap !== undefined && cap > due ? { latest: { at: cap, text: `latest ${until(cap)}` } } : {}
      return { beside: { at: due, tone: 'wait', text: until(due) }, ...latest }
    }
    case 'running':
      return run === undefined || run.until <= now
        ? {}
        : { beside: { at: run.until, tone: 'run', text: `lease ${until(run.until)}` } }
    case 'limited':
      return run === undefined || run.until <= now
        ? {}
        : { beside: { at: run.until, tone: 'limit', text: until(run.until) } }
    case 'retrying':
    case 'snoozed': {
      if (run === undefined || run.until <= now) return {}
      const isRetry = run.state === 'retrying'
      return { beside: { at: run.until, tone: isRetry ? 'fail' : 'still', text: until(run.until) } }
    }
    case 'blocked':
      return { atNow: { tone: 'fail', text: 'waits for its dead letter' } }
    case 'held': {
      const end = lane.hold?.until
      return end === undefined ? {} : { beside: { at: end, tone: 'still', text: `hold ends in ${until(end)}` } }
    }
    case 'lapsed':
    case 'idle':
      return {}
  }
}
