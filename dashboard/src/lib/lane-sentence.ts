// Why a lane is in its state, in one sentence with the figures that matter. The page of a lane opens with it.
import { countdown, ordinal, plural, visible } from './format.ts'
import { shownState, type Tone } from './states.ts'
import type { FlowStatus, Lane } from './types.ts'

/** A part of a sentence; a figure is bold, and has a tone if the state speaks in it. */
export type Phrase = string | { readonly text: string; readonly tone?: Tone }

const bold = (text: string, tone?: Tone): Phrase => (tone === undefined ? { text } : { text, tone })
const events = (count: number): Phrase => bold(plural(count, 'event'))

export function sentenceOf(lane: Lane, now: number, flow?: FlowStatus): readonly Phrase[] {
  const { run, due, cap, waiting } = lane
  const inTime = (at: number, tone?: Tone): Phrase => bold(at <= now ? 'now' : `in ${countdown(at - now)}`, tone)
  const ago = (at: number, tone?: Tone): Phrase => bold(countdown(now - at), tone)
  switch (shownState(lane)) {
    case 'waiting': {
      if (due === undefined) return ['Waits with ', events(waiting), '.']
      if (due <= now) return readySentence(lane, now, flow)
      const start = ['Waits for its window with ', events(waiting), ': due ', inTime(due, 'wait')]
      if (cap === undefined) return [...start, ', later if more events arrive.']
      if (cap <= due) return [...start, ', whatever else arrives.']
      return [...start, ', at the latest ', inTime(cap), ' if more events arrive.']
    }
    case 'ready':
      return readySentence(lane, now, flow)
    case 'running':
      if (run === undefined) return ['Runs.']
      return [
        'Runs for ',
        ago(run.started, 'run'),
        ' with ',
        events(run.events),
        `, at attempt ${run.tries + 1}`,
        ...(lane.waitsFor === undefined
          ? []
          : [
              ', and waits for a slot of ',
              bold(visible(lane.waitsFor.limit), 'limit'),
              ' ',
              inTime(now + lane.waitsFor.in),
            ]),
        run.cancel ? '; it was asked to cancel' : '',
        ...behind(lane),
        '.',
      ]
    case 'lapsed':
      return [
        'Its process stopped renewing the lease, which ended ',
        ago(run?.until ?? now, 'fail'),
        ' ago. The run comes back with the same ',
        events(run?.events ?? 0),
        '.',
      ]
    case 'retrying':
      return [
        `Attempt ${run?.tries ?? 0} failed${errorOf(run)}. The next one starts `,
        inTime(run?.until ?? now, 'fail'),
        ...behind(lane),
        '.',
      ]
    case 'limited':
      return [
        'Was deferred by ',
        bold(visible(lane.deferredBy ?? 'a limit'), 'limit'),
        ', and runs ',
        inTime(run?.until ?? due ?? now, 'limit'),
        ' with ',
        events(run?.events ?? 0),
        '. No attempt is used',
        ...behind(lane),
        '.',
      ]
    case 'snoozed':
      return ['Its handler snoozed the run, which goes on ', inTime(run?.until ?? due ?? now), ...behind(lane), '.']
    case 'blocked':
      return [
        'Is blocked by ',
        bold(plural(Math.max(1, lane.blocks), 'dead letter'), 'fail'),
        '. ',
        events(waiting),
        waiting === 1 ? ' waits until it is retried or dropped.' : ' wait until it is retried or dropped.',
      ]
    case 'held':
      return heldSentence(lane, now)
    case 'idle':
      return ['Holds no event.']
  }
}

function readySentence(lane: Lane, now: number, flow: FlowStatus | undefined): readonly Phrase[] {
  const start = ['Has been due for ', bold(countdown(now - (lane.due ?? now)), 'ready'), ' with ', events(lane.waiting)]
  const rank = lane.rank === undefined ? [] : [', ', bold(`${ordinal(lane.rank)} in line`)]
  const why =
    flow?.paused !== undefined
      ? `; the flow was paused by ${visible(flow.paused.by)}`
      : flow?.declared === false
        ? '; no process serves the flow'
        : flow?.concurrency !== undefined && flow.running >= flow.concurrency
          ? flow.concurrency === 1
            ? '; the permit of the flow is taken'
            : `; all ${flow.concurrency} permits of the flow are taken`
          : ''
  return [...start, ...rank, `${why}.`]
}

function heldSentence({ hold, waiting }: Lane, now: number): readonly Phrase[] {
  const until = hold?.until
  return [
    'Is held by ',
    bold(visible(hold?.by ?? 'somebody')),
    hold === undefined || hold.reason === '' ? '' : ` (“${visible(hold.reason)}”)`,
    until === undefined ? ' until somebody ends the hold' : ' for ',
    ...(until === undefined ? [] : [bold(`${countdown(until - now)} more`, 'still')]),
    ', with ',
    events(waiting),
    '.',
  ]
}

function errorOf(run: Lane['run']): string {
  const error = (run?.attempts.at(-1)?.error ?? '').replace(/\.$/, '')
  return error === '' ? '' : ` (${visible(error.length > 120 ? `${error.slice(0, 120)}…` : error)})`
}

function behind({ waiting }: Lane): readonly Phrase[] {
  return waiting === 0 ? [] : ['; ', events(waiting), waiting === 1 ? ' waits behind it' : ' wait behind it']
}

/** The sentence as plain text, for titles and screen readers. */
export function textOf(phrases: readonly Phrase[]): string {
  return phrases.map((phrase) => (typeof phrase === 'string' ? phrase : phrase.text)).join('')
}
