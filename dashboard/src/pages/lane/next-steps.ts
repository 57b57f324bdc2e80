// The next steps of a lane with their times. Estimates say "about".
import type { NextStep } from '../../components/steps.tsx'
import { bytes, clock, countdown, duration, ordinal, plural, visible } from '../../lib/format.ts'
import { LANE_LOOKS, shownState } from '../../lib/states.ts'
import type { FlowStatus, LaneDetail } from '../../lib/types.ts'

export function nextSteps(lane: LaneDetail, now: number, flow?: FlowStatus): readonly NextStep[] {
  const state = shownState(lane)
  const { run, flowOptions: options } = lane
  const steps: NextStep[] = []
  if (state === 'held') {
    const until = lane.hold?.until
    steps.push({
      when: until === undefined ? 'one day' : `in ${countdown(until - now)}`,
      look: LANE_LOOKS.held,
      tone: 'still',
      title: 'The hold ends',
      text:
        until === undefined ? 'Only when somebody ends it. Events still arrive.' : 'Or earlier, if somebody ends it.',
    })
  }
  if (state === 'blocked') {
    steps.push({
      when: 'first',
      look: LANE_LOOKS.blocked,
      tone: 'fail',
      title: 'Its dead letter is retried or dropped',
      text: 'The flow keeps the order of a lane: onDead is block.',
    })
  }
  if (run !== undefined) steps.push(...runSteps(lane, run, now))
  else steps.push(...windowSteps(lane, now, flow))
  if (run?.state !== 'running' || lane.waiting > 0) steps.push(runStep(lane, now))
  if (options !== undefined) steps.push(elseStep(options))
  return steps
}

function windowSteps(lane: LaneDetail, now: number, flow: FlowStatus | undefined): readonly NextStep[] {
  const steps: NextStep[] = []
  const { due, cap, flowOptions: options, slots, medianRunMs } = lane
  const isWaiting = due !== undefined && due > now
  if (isWaiting) {
    const quiet = options?.window?.quiet
    steps.push({
      when: `in ${countdown(due - now)}`,
      look: LANE_LOOKS.waiting,
      tone: 'wait',
      title: 'Its window closes',
      text:
        cap === undefined
          ? 'An event before that moves it.'
          : cap <= due
            ? 'No further event moves it.'
            : quiet === undefined
              ? `At the latest at ${clock(cap)}.`
              : `An event before that moves it to ${duration(quiet)} after the event, at the latest to ${clock(cap)}.`,
    })
  }
  const used = slots?.used ?? flow?.running
  const of = slots?.of ?? flow?.concurrency
  if (!isWaiting || (used !== undefined && of !== undefined && used >= of)) {
    const taken = of !== undefined && used !== undefined ? `${used} of ${plural(of, 'permit')} taken` : ''
    const median = medianRunMs === undefined ? '' : `a run takes about ${duration(medianRunMs)}`
    steps.push({
      when: isWaiting ? 'then' : 'now',
      look: LANE_LOOKS.ready,
      ...(isWaiting ? {} : { tone: 'ready' as const }),
      title: lane.rank === undefined ? 'It waits for a permit' : `It is ${ordinal(lane.rank)} in line`,
      text: [taken, median].filter((text) => text !== '').join('; ') || 'First ready, first served.',
    })
  }
  return steps
}

function runSteps(lane: LaneDetail, run: NonNullable<LaneDetail['run']>, now: number): readonly NextStep[] {
  const state = shownState(lane)
  const look = LANE_LOOKS[state]
  const inTime = run.until <= now ? 'now' : `in ${countdown(run.until - now)}`
  if (state === 'running') {
    const waits = lane.waitsFor
    return [
      {
        when: 'now',
        look,
        tone: 'run',
        title: `It runs with ${plural(run.events, 'event')}`,
        text:
          waits === undefined
            ? `Attempt ${run.tries + 1}, ${bytes(run.bytes)}. Its lease ends ${inTime} unless it is renewed.`
            : `Attempt ${run.tries + 1}. It waits for a slot of ${visible(waits.limit)}, which is due in ${countdown(waits.in)}.`,
      },
    ]
  }
  const title =
    state === 'limited'
      ? `It gets a slot of ${visible(lane.deferredBy ?? 'the limit')}`
      : state === 'retrying'
        ? `Attempt ${run.tries + 1} starts`
        : state === 'lapsed'
          ? 'The run comes back'
          : 'The run goes on'
  const text =
    state === 'limited'
      ? 'It holds no permit and uses no attempt while it waits.'
      : state === 'retrying'
        ? 'The run keeps its id and its events; it holds no permit while it waits.'
        : state === 'lapsed'
          ? `Lapse ${run.lapses}. It keeps its id and its events.`
          : 'Its handler asked for this time.'
  return [{ when: inTime, look, tone: look.tone, title, text }]
}

function runStep(lane: LaneDetail, now: number): NextStep {
  const { flowOptions: options, medianRunMs, waiting, run } = lane
  const count = run === undefined || run.state === 'running' ? waiting : run.events
  const limit =
    options === undefined ? '' : options.timeoutMs === undefined ? '' : `, for ${duration(options.timeoutMs)} at most`
  const usual = medianRunMs === undefined ? '' : ` As a rule a run takes ${duration(medianRunMs)}.`
  const at = lane.due !== undefined && lane.due > now ? `about ${clock(lane.due)}` : 'then'
  const attempt = run === undefined || run.state === 'running' ? 1 : run.tries + 1
  const of = options === undefined ? '' : ` of ${options.attempts}`
  return {
    when: run?.state === 'running' ? 'after it' : at,
    look: LANE_LOOKS.running,
    title: count === 0 ? 'It runs' : `It runs with ${plural(count, 'event')}`,
    text: `Attempt ${attempt}${of}${limit}.${usual}`,
  }
}

function elseStep(options: NonNullable<LaneDetail['flowOptions']>): NextStep {
  const delays = options.retryDelays.map((delay) => duration(delay))
  const shown = delays.length > 4 ? `${delays.slice(0, 3).join(', ')} … ${delays.at(-1)}` : joined(delays)
  return {
    when: 'if it fails',
    look: LANE_LOOKS.retrying,
    isElse: true,
    title: delays.length === 0 ? 'It is a dead letter at once' : `Again after ${shown}`,
    text:
      options.onDead === 'block'
        ? 'Then it is a dead letter, and the lane waits for it.'
        : 'Then it is a dead letter, and the lane goes on.',
  }
}

function joined(texts: readonly string[]): string {
  return texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`
}
