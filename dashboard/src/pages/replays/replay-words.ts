// What a replay reads and where it is, in words.
import { countdown, plural, rateOf, visible, when } from '../../lib/format.ts'
import type { Look } from '../../lib/states.ts'
import type { Replay } from '../../lib/types.ts'

export const REPLAY_LOOKS: Readonly<Record<Replay['state'], Look>> = {
  running: { tone: 'run', icon: 's-run', word: 'Running' },
  done: { tone: 'run', icon: 'check', word: 'Done' },
  cancelled: { tone: 'still', icon: 's-off', word: 'Cancelled' },
  stuck: { tone: 'fail', icon: 's-dead', word: 'Stuck' },
}

const MOST_FLOWS = 3

/** `whatOf` says which events a replay reads: "order.paid of shopify, from 06:00 until 18:00". */
export function whatOf(
  { filter, event, endpoint }: Pick<Replay, 'filter' | 'event' | 'endpoint'>,
  now: number,
): string {
  if (event !== undefined) return `the event ${visible(event)}`
  const { type, source, tenant, subject, lane, from, to } = filter
  const parts = [
    type === undefined ? 'all events' : visible(type),
    source === undefined ? '' : ` of ${visible(source)}`,
    subject === undefined ? '' : ` about ${visible(subject)}`,
    tenant === undefined ? '' : ` of the tenant ${visible(tenant)}`,
    lane === undefined ? '' : ' of one lane',
    from === undefined ? '' : `, from ${when(from, now)}`,
    to === undefined ? '' : `, until ${when(to, now)}`,
    endpoint === undefined ? '' : ', to one endpoint',
  ]
  return parts.join('')
}

export function intoText({ into, endpoint }: Pick<Replay, 'into' | 'endpoint'>): string {
  if (endpoint !== undefined) return `to ${endpoint}`
  if (into.length === 0) return 'into all flows'
  const shown = into.slice(0, MOST_FLOWS).join(', ')
  return `into ${visible(shown)}${into.length > MOST_FLOWS ? ` and ${into.length - MOST_FLOWS} more` : ''}`
}

export function paceText({ rate, per }: Pick<Replay, 'rate' | 'per'>): string {
  return rateOf(rate, per)
}

/** When the last event will be placed, if nothing slows the replay down. */
export function endOf(replay: Replay, now: number): number {
  if (replay.endsAbout !== undefined) return replay.endsAbout
  const left = Math.max(0, replay.found - replay.scanned)
  return now + (left / replay.rate) * replay.per
}

export function stateText(replay: Replay, now: number): string {
  const { state, placed, skipped, gone, failed, ended } = replay
  const rest = [
    skipped === 0 ? '' : `${plural(skipped, 'event')} skipped`,
    gone === 0 ? '' : `${plural(gone, 'event')} gone`,
    failed === 0 ? '' : `${plural(failed, 'event')} failed`,
  ].filter((part) => part !== '')
  const done = [`${plural(placed, 'event')} placed`, ...rest].join(', ')
  if (state === 'running') return `${done}; about ${countdown(Math.max(0, endOf(replay, now) - now))} to go`
  return ended === undefined ? done : `${done}; ended ${when(ended, now)}`
}
