// `sluice flows` and `sluice limits`: their backlog and state, and how an operator pauses them.
import { toPath } from '../api-client.ts'
import { PAGE_OPTIONS, callAndPrint, callAndPrintPage, textOptions, type Command } from '../command.ts'
import { formatTime, type Column } from '../output.ts'
import { callAction } from './lanes.ts'

interface Flow {
  readonly flow: string
  readonly lanes: number
  readonly live: number
  readonly due?: number
  readonly paused?: { readonly reason: string; readonly by: string }
}

interface Limit {
  readonly name: string
  readonly declared: boolean
  readonly pausedUntil?: number
}

const FLOW_COLUMNS: readonly Column<Flow>[] = [
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'lanes', cell: ({ lanes }) => lanes },
  { title: 'running', cell: ({ live }) => live },
  { title: 'next due', cell: ({ due }) => formatTime(due) },
  { title: 'paused', cell: ({ paused }) => paused && `by ${paused.by}: ${paused.reason}` },
]

const LIMIT_COLUMNS: readonly Column<Limit>[] = [
  { title: 'limit', cell: ({ name }) => name },
  { title: 'declared', cell: ({ declared }) => (declared ? 'here' : 'elsewhere') },
  { title: 'paused until', cell: ({ pausedUntil }) => pausedUntil && formatPauseEnd(pausedUntil) },
]

/** A pause beyond the last representable date ends only by hand. */
function formatPauseEnd(pausedUntil: number): string {
  return formatTime(pausedUntil) ?? 'an operator resumes it'
}

const REASON_OPTION = { reason: 'the reason, shown to other operators' } as const

export const flows: readonly Command[] = [
  {
    name: 'flows list',
    description: 'list all flows with their backlog',
    run: (scene) =>
      callAndPrintPage(scene, { method: 'GET', path: '/v1/flows' }, (items: readonly Flow[]) =>
        scene.output.table(FLOW_COLUMNS, items, 'There are no flows.'),
      ),
  },
  {
    name: 'flows pause',
    positionals: ['<flow>'],
    description: 'pause a flow: start no run; events still arrive and windows still end',
    options: textOptions(REASON_OPTION),
    run: (scene) => {
      const [flow = ''] = scene.args.words
      return callAction(scene, toPath('v1/flows', flow, 'pause'), { reason: scene.args.text('reason') ?? 'by hand' })
    },
  },
  {
    name: 'flows resume',
    positionals: ['<flow>'],
    description: 'resume a flow',
    run: (scene) => callAction(scene, toPath('v1/flows', scene.args.words[0] ?? '', 'resume'), {}),
  },
]

export const limits: readonly Command[] = [
  {
    name: 'limits list',
    description: 'list limits, and which are paused',
    options: PAGE_OPTIONS,
    run: (scene) => {
      const query = scene.args.texts(['limit', 'cursor'])
      return callAndPrintPage(scene, { method: 'GET', path: '/v1/limits', query }, (items: readonly Limit[]) =>
        scene.output.table(LIMIT_COLUMNS, items, 'There are no limits.'),
      )
    },
  },
  {
    name: 'limits pause',
    positionals: ['<limit>'],
    description: 'pause a limit in every process for this time',
    options: textOptions({ ...REASON_OPTION, for: 'how long, as 10m; 10m unless said' }),
    run: (scene) => {
      const [name = ''] = scene.args.words
      const body = { for: '10m', reason: 'by hand', ...scene.args.texts(['for', 'reason']) }
      const call = { method: 'POST', path: toPath('v1/limits', name, 'pause'), body } as const
      return callAndPrint(scene, call, ({ pausedUntil = 0 }: Limit) =>
        scene.output.print(`Paused until ${formatPauseEnd(pausedUntil)}.`),
      )
    },
  },
  {
    name: 'limits resume',
    positionals: ['<limit>'],
    description: 'end the pause of a limit, and the reduced rate after it',
    run: (scene) => {
      const path = toPath('v1/limits', scene.args.words[0] ?? '', 'resume')
      return callAndPrint(scene, { method: 'POST', path, body: {} }, () => scene.output.print('Done.'))
    },
  },
]
