// `sluice lanes` and `sluice explain`: the state of a key's lane, its explanation, and an operator's actions on it.
import type { LaneView } from '../../admin/lane-view.ts'
import type { ExplanationFacts } from '../../observe/explain/facts.ts'
import type { StoredEventDetails } from '../../admin/stored-events.ts'
import { toPath, type FailedResult } from '../api-client.ts'
import { reportFailure } from '../problem.ts'
import {
  callAndPrint,
  callApi,
  confirmOrExit,
  listCommand,
  PAGE_OPTIONS,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
  type ListPage,
  type CommandContext,
} from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { escapeText, escapeLines, formatTime, type Output } from '../output.ts'
import { findUnknownFlow, listFlowNames } from '../unknown-flow.ts'

const LANE_POSITIONALS = ['<id or flow>', '[key]'] as const

export const explain: Command = {
  name: 'explain',
  positionals: ['<flow or event>', '[key]'],
  description: 'explain where the events of a key are, or what happened to one event',
  run: async (context) => {
    const { output } = context
    const [flow = '', key] = context.args.words
    if (key === undefined) return explainEvent(context, flow)
    const answer = await callApi(context, { method: 'GET', path: '/v1/explain', query: { flow, key } })
    if (answer.kind !== 'done') return reportFailure(output, answer)
    const { text, state, facts } = answer.value as Explained
    // A flow that was removed may have left work and records.
    const isUnknown =
      state === 'unknown-flow' && facts.laneState === 'empty' && !facts.dead && facts.lastRun === undefined
    const problem = isUnknown ? await findUnknownFlow((call) => callApi(context, call), flow) : undefined
    if (problem !== undefined) return reportFailure(output, { kind: 'problem', problem })
    if (output.asJson) output.printJson(answer.value)
    else output.print(escapeLines(text))
    return EXIT.done
  },
}

interface Explained {
  readonly text: string
  readonly state: string
  readonly facts: Pick<ExplanationFacts, 'laneState' | 'dead' | 'lastRun'>
}

/** Explains an event by its id: the lanes it entered, and the flows that did not take it. */
async function explainEvent(context: CommandContext, id: string): Promise<ExitCode> {
  const { output } = context
  const answer = await callApi(context, { method: 'GET', path: toPath('v1/events', id) })
  if (answer.kind === 'problem' && answer.problem.code === 'NOT_FOUND') return reportMissingEvent(context, id, answer)
  if (answer.kind !== 'done') return reportFailure(output, answer)
  if (output.asJson) output.printJson(answer.value)
  else printEvent(output, answer.value as StoredEventDetails)
  return EXIT.done
}

/** Whoever forgets the key gave a flow, not an event. */
async function reportMissingEvent(context: CommandContext, id: string, answer: FailedResult): Promise<ExitCode> {
  const flows = (await listFlowNames((call) => callApi(context, call))) ?? []
  if (!flows.includes(id)) return reportFailure(context.output, answer)
  return reportMisuse(context, `${id} is a flow, so explain needs a key as well: sluice explain ${id} <key>.`)
}

function printEvent(out: Output, event: StoredEventDetails): void {
  out.print(escapeText(`Event ${event.id} (${event.source}/${event.type}) arrived ${formatTime(event.arrived) ?? ''}.`))
  for (const { id: lane, state, flow, key } of event.lanes) {
    const named = flow === undefined ? lane : `${flow} ${key ?? ''}`.trimEnd()
    const run = event.runs.find((one) => one.lane === lane)
    const ran = run === undefined ? '' : `; its run ended as ${run.kind} ${formatTime(run.ended) ?? ''}`
    out.print(escapeText(`Lane ${named}: ${state === 'gone' ? 'empty now' : state}${ran}.`))
  }
  if (event.note !== '') out.print(escapeText(`${event.note}.`))
}

const list = listCommand<LaneView>({
  name: 'lanes list',
  description: 'list lanes that are not empty, newest first',
  options: {
    ...textOptions({ flow: 'lanes of this flow', key: 'requires --flow', tenant: 'lanes of this tenant' }),
    ...PAGE_OPTIONS,
  },
  path: '/v1/lanes',
  columns: [
    'id',
    'flow',
    'key',
    'state',
    'waiting',
    { title: 'in run', cell: ({ run }) => run?.events },
    { title: 'due', cell: ({ due }) => formatTime(due) },
  ],
  none: 'All lanes are empty.',
})

const showCommand: Command = {
  name: 'lanes show',
  positionals: LANE_POSITIONALS,
  description: 'show one lane, by id or by flow and key',
  run: (context) =>
    withLaneId(context, (id) =>
      callAndPrint(context, { method: 'GET', path: toPath('v1/lanes', id) }, (lane: LaneView) =>
        context.output.fields([
          ['id', lane.id],
          ['flow', lane.flow],
          ['key', lane.key],
          ['tenant', lane.tenant === '' ? undefined : lane.tenant],
          ['state', lane.state],
          ['due', formatTime(lane.due)],
          ['waiting', lane.waiting],
          ['replays', lane.replays],
          ['blocked by', lane.blocks === 0 ? undefined : `${lane.blocks} dead letters`],
          ['held', lane.hold && `by ${lane.hold.by}: ${lane.hold.reason}`],
          ['held until', formatTime(lane.hold?.until)],
          [
            'run',
            lane.run && `${lane.run.id}, ${lane.run.state}, ${lane.run.events} events, ${lane.run.tries} attempts`,
          ],
        ]),
      ),
    ),
}

const ACTIONS = {
  'run-now': { description: 'make a lane due now: end its window or retry delay', question: undefined },
  cancel: { description: 'ask the run of a lane to cancel; its events wait again', question: undefined },
  drop: {
    description: 'drop the waiting events of a lane without a run',
    question: 'This drops the waiting events of the lane.',
  },
  unhold: { description: 'end the hold of a lane', question: undefined },
} as const

const actionCommands: readonly Command[] = (['run-now', 'cancel', 'drop', 'unhold'] as const).map((act) => ({
  name: `lanes ${act}`,
  positionals: LANE_POSITIONALS,
  description: ACTIONS[act].description,
  ...(ACTIONS[act].question !== undefined && { options: { yes: YES_OPTION } }),
  run: (context) =>
    withLaneId(context, async (id) => {
      const { question } = ACTIONS[act]
      const no = question === undefined ? undefined : await confirmOrExit(context, `${question} Continue?`)
      if (no !== undefined) return no
      return callAction(context, toPath('v1/lanes', id, act), {})
    }),
}))

const holdCommand: Command = {
  name: 'lanes hold',
  positionals: LANE_POSITIONALS,
  description: 'hold a lane: start no run until the hold ends',
  options: textOptions({
    reason: 'the reason, shown to other operators',
    for: 'duration, e.g. 10m; default until unhold',
  }),
  run: (context) => {
    const body = { reason: 'by hand', ...context.args.texts(['reason', 'for']) }
    return withLaneId(context, (id) => callAction(context, toPath('v1/lanes', id, 'hold'), body))
  },
}

export const lanes: readonly Command[] = [list, showCommand, ...actionCommands, holdCommand]

const RESULT_TEXTS = {
  ok: 'Done.',
  already: 'Nothing to do: the state is already as requested.',
  missing: 'Nothing to do: it no longer exists.',
  running: 'Not done: a run is in progress.',
} as const

/** An action that a run prevents has failed, even though the API responds with 200. */
export function callAction(
  context: CommandContext,
  path: string,
  body: object,
  running: string = RESULT_TEXTS.running,
): Promise<ExitCode> {
  const print = ({ result }: ActionResult): void =>
    context.output.print(result === 'running' ? running : RESULT_TEXTS[result])
  return callAndPrint(context, { method: 'POST', path, body }, print, ({ result }) =>
    result === 'running' ? EXIT.failed : EXIT.done,
  )
}

interface ActionResult {
  readonly result: keyof typeof RESULT_TEXTS
}

/** People know flow and key; the API uses lane ids. */
async function withLaneId(context: CommandContext, act: (id: string) => Promise<ExitCode>): Promise<ExitCode> {
  const [first = '', key] = context.args.words
  if (key === undefined) {
    if (/^[\w-]{20,40}$/.test(first)) return act(first)
    return reportMisuse(context, `The lane must be a flow and a key, or an id from sluice lanes; got ${first}.`)
  }
  const answer = await callApi(context, { method: 'GET', path: '/v1/lanes', query: { flow: first, key, limit: '1' } })
  if (answer.kind !== 'done') return reportFailure(context.output, answer)
  const lane = (answer.value as ListPage<LaneView>).items[0]
  if (lane !== undefined) return act(lane.id)
  const unknown = await findUnknownFlow((call) => callApi(context, call), first)
  if (unknown !== undefined) return reportFailure(context.output, { kind: 'problem', problem: unknown })
  const detail = 'The lane is empty or never existed.'
  const problem = {
    status: 404,
    code: 'NOT_FOUND',
    detail,
    fix: `sluice explain ${first} ${key} shows which of the two.`,
  }
  return reportFailure(context.output, { kind: 'problem', problem })
}
