// What became of an event: one row for each lane that it entered, and the sentence that sums them up.
import type { Phrase } from '../../lib/lane-sentence.ts'
import { countdown, plural, since, visible } from '../../lib/format.ts'
import { LANE_LOOKS, RUN_LOOKS, shownState, type Look } from '../../lib/states.ts'
import { laneName } from '../../state/endpoint-names.ts'
import type { Attempt, EventDetail, LaneRun, RunKind } from '../../lib/types.ts'

export interface LaneLife {
  readonly id: string
  readonly flow: string
  /** The key, or the name of the endpoint. */
  readonly name: string
  readonly look: Look
  readonly ending: string
  readonly detail: string
  readonly state: 'done' | 'open' | 'dead' | 'ended'
  readonly due: number | undefined
  readonly started: number | undefined
  readonly ended: number | undefined
  readonly attempts: readonly Attempt[]
  readonly kind: RunKind | undefined
  readonly run: string | undefined
  readonly live: LaneRun | undefined
}

export function livesOf(event: EventDetail, now: number): readonly LaneLife[] {
  return event.lanes.map((lane): LaneLife => {
    const ended = event.runs.find((run) => run.lane === lane.id)
    const endpoint = event.deliveries?.find(({ endpoint: id }) => id === lane.key)
    const base = {
      id: lane.id,
      flow: lane.flow ?? ended?.flow ?? 'a flow that is gone',
      name: endpoint?.name ?? laneName({ flow: lane.flow ?? ended?.flow ?? '', key: lane.key ?? ended?.key ?? '' }),
    }
    if (ended !== undefined) {
      const { kind, started, ended: at } = ended
      return {
        ...base,
        look: RUN_LOOKS[kind],
        state: kind === 'done' ? 'done' : kind === 'dead' ? 'dead' : 'ended',
        ending: `${RUN_LOOKS[kind].word} after ${countdown(at - event.arrived) === '0 s' ? `${Math.max(1, at - event.arrived)} ms` : countdown(at - event.arrived)}`,
        detail: endedDetail(ended),
        due: ended.due,
        started,
        ended: at,
        attempts: ended.attempts ?? [],
        kind,
        run: ended.id,
        live: undefined,
      }
    }
    if (lane.state === 'gone') {
      return {
        ...base,
        ...NOTHING,
        look: RUN_LOOKS.superseded,
        state: 'ended',
        ending: 'Ended',
        detail: 'its run is no longer kept',
      }
    }
    const state = shownState({
      state: lane.state,
      ...(lane.deferredBy !== undefined && { deferredBy: lane.deferredBy }),
    })
    const look = LANE_LOOKS[state]
    const error = lane.run?.attempts.at(-1)?.error
    return {
      ...base,
      look,
      state: 'open',
      ending: openText(lane.due ?? lane.run?.until, look.word, now),
      detail: error === undefined || error === '' ? 'not ended yet' : visible(error),
      due: lane.due,
      started: lane.run?.started,
      ended: undefined,
      attempts: lane.run?.attempts ?? [],
      kind: undefined,
      run: undefined,
      live: lane.run,
    }
  })
}

const NOTHING = {
  due: undefined,
  started: undefined,
  ended: undefined,
  attempts: [],
  kind: undefined,
  run: undefined,
  live: undefined,
} as const

function openText(due: number | undefined, word: string, now: number): string {
  if (due === undefined) return word
  return due > now ? `${word}, due in ${countdown(due - now)}` : `${word} for ${countdown(now - due)}`
}

function endedDetail({ attempts = [], events, reason, kind }: EventDetail['runs'][number]): string {
  const error = attempts[0]?.error
  if (kind !== 'done' && reason !== undefined && reason !== '') return visible(reason)
  if (error !== undefined && error !== '') return `first attempt: ${visible(error)}`
  return events === undefined ? 'at the first attempt' : events === 1 ? 'alone in its batch' : `in a batch of ${events}`
}

export interface Summary {
  readonly look: Look
  readonly word: string
  readonly sentence: readonly Phrase[]
}

const bold = (text: string): Phrase => ({ text })

export function summaryOf(event: EventDetail, lives: readonly LaneLife[], now: number): Summary {
  if (event.purged)
    return { look: RUN_LOOKS.purged, word: 'Purged', sentence: ['Its data was ', bold('purged'), ' by an operator.'] }
  const unrouted = event.unrouted[0]
  if (unrouted !== undefined) {
    return {
      look: LANE_LOOKS.blocked,
      word: 'Unrouted',
      sentence: [
        'Still lacks its place in ',
        bold(visible(unrouted.flow)),
        `: ${visible(unrouted.error || unrouted.reason)}`,
        '.',
      ],
    }
  }
  if (lives.length === 0) {
    return {
      look: LANE_LOOKS.idle,
      word: 'No lane',
      sentence: [event.note === '' ? 'No flow took this event.' : `${sentenceCase(visible(event.note))}.`],
    }
  }
  const done = lives.filter(({ state }) => state === 'done' || state === 'ended').length
  const dead = lives.filter(({ state }) => state === 'dead')
  const open = lives.filter(({ state }) => state === 'open')
  if (dead.length > 0) {
    const first = dead[0]
    return {
      look: RUN_LOOKS.dead,
      word: dead.length === lives.length ? 'Dead' : `Dead in ${dead.length} of ${lives.length}`,
      sentence: [
        'Is part of ',
        { text: plural(dead.length, 'dead letter'), tone: 'fail' },
        ': in ',
        bold(nameOf(first)),
        first?.detail === undefined || first.detail === '' ? '' : ` (${cut(first.detail)})`,
        lives.length > dead.length ? `. It is done in ${done} of its ${lives.length} lanes.` : '.',
      ],
    }
  }
  const waiting = open[0]
  if (waiting === undefined) {
    return {
      look: RUN_LOOKS.done,
      word: 'Done',
      sentence: [
        'Done in ',
        bold(lives.length === 1 ? 'its lane' : `all of its ${lives.length} lanes`),
        ', after ',
        bold(countdown(Math.max(...lives.map(({ ended }) => (ended ?? event.arrived) - event.arrived)))),
        '.',
      ],
    }
  }
  const failing = waiting.attempts[0]
  return {
    look: waiting.look,
    word: lives.length === 1 ? waiting.look.word : `${open.length} of ${lives.length} open`,
    sentence: [
      ...(lives.length === 1 ? [] : ['Done in ', bold(`${done} of its ${lives.length} lanes`), '. ']),
      'In ',
      bold(nameOf(waiting)),
      ' it is ',
      { text: waiting.look.word.toLowerCase(), tone: waiting.look.tone },
      ...(failing === undefined
        ? []
        : [', and its run ', { text: `fails ${since(failing.at, now)}`, tone: 'fail' as const }]),
      '.',
    ],
  }
}

function nameOf(life: LaneLife | undefined): string {
  return life === undefined ? '' : `${visible(life.flow)} / ${visible(life.name)}`
}

function cut(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

function sentenceCase(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
