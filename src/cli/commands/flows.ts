// `sluice flows` and `sluice limits`: their backlog and state, and how an operator pauses them.
import type { LimitView } from '../../admin/limits.ts'
import type { FlowStats } from '../../store/contract/index.ts'
import { toPath } from '../api-client.ts'
import {
  callAndConfirm,
  callAndPrint,
  callApi,
  confirmOrExit,
  listCommand,
  PAGE_OPTIONS,
  textOptions,
  YES_OPTION,
  type Command,
} from '../command.ts'
import { formatTime } from '../output.ts'
import { reportFailure } from '../problem.ts'
import { findUnknownFlow } from '../unknown-flow.ts'
import { callAction } from './lanes.ts'

/** A pause beyond the last representable date ends only by hand. */
function formatPauseEnd(pausedUntil: number): string {
  return formatTime(pausedUntil) ?? 'an operator resumes it'
}

const REASON_OPTION = { reason: 'the reason, shown to other operators' } as const

export const flows: readonly Command[] = [
  listCommand<FlowStats>({
    name: 'flows list',
    description: 'list all flows with their backlog',
    path: '/v1/flows',
    columns: [
      'flow',
      'lanes',
      { title: 'running', cell: ({ live }) => live },
      { title: 'next due', cell: ({ due }) => formatTime(due) },
      { title: 'paused', cell: ({ paused }) => paused && `by ${paused.by}: ${paused.reason}` },
    ],
    none: 'There are no flows.',
  }),
  {
    name: 'flows pause',
    positionals: ['<flow>'],
    description: 'pause a flow: start no run; events still arrive and windows still end',
    options: textOptions(REASON_OPTION),
    run: (context) => {
      const [flow = ''] = context.args.words
      return callAction(context, toPath('v1/flows', flow, 'pause'), {
        reason: context.args.text('reason') ?? 'by hand',
      })
    },
  },
  {
    name: 'flows resume',
    positionals: ['<flow>'],
    description: 'resume a flow',
    run: (context) => callAction(context, toPath('v1/flows', context.args.words[0] ?? '', 'resume'), {}),
  },
  {
    name: 'flows retire',
    positionals: ['<flow>'],
    description: 'retire a flow that was removed or renamed: keep no more events for it, and drop its unrouted ones',
    options: { yes: YES_OPTION },
    run: async (context) => {
      const [flow = ''] = context.args.words
      const problem = await findUnknownFlow((call) => callApi(context, call), flow)
      if (problem !== undefined) return reportFailure(context.output, { kind: 'problem', problem })
      const no = await confirmOrExit(context, `The unrouted events of the flow ${flow} are dropped for good. Go on?`)
      if (no !== undefined) return no
      return callAction(context, toPath('v1/flows', flow, 'retire'), {}, 'Not done: a process still serves the flow.')
    },
  },
]

export const limits: readonly Command[] = [
  listCommand<LimitView>({
    name: 'limits list',
    description: 'list limits, and which are paused',
    options: PAGE_OPTIONS,
    path: '/v1/limits',
    columns: [
      { title: 'limit', cell: ({ name }) => name },
      { title: 'declared', cell: ({ declared }) => (declared ? 'here' : 'elsewhere') },
      { title: 'paused until', cell: ({ pausedUntil }) => pausedUntil && formatPauseEnd(pausedUntil) },
    ],
    none: 'There are no limits.',
  }),
  {
    name: 'limits pause',
    positionals: ['<limit>'],
    description: 'pause a limit in every process',
    options: textOptions({ ...REASON_OPTION, for: 'duration, e.g. 5m; default 10m' }),
    run: (context) => {
      const [name = ''] = context.args.words
      const body = { for: '10m', reason: 'by hand', ...context.args.texts(['for', 'reason']) }
      const call = { method: 'POST', path: toPath('v1/limits', name, 'pause'), body } as const
      return callAndPrint(context, call, ({ pausedUntil = 0 }: LimitView) =>
        context.output.print(`Paused until ${formatPauseEnd(pausedUntil)}.`),
      )
    },
  },
  {
    name: 'limits resume',
    positionals: ['<limit>'],
    description: 'end the pause of a limit, and the reduced rate after it',
    run: (context) => {
      const path = toPath('v1/limits', context.args.words[0] ?? '', 'resume')
      return callAndConfirm(context, { method: 'POST', path, body: {} })
    },
  },
]
