// `sluice replay` places stored events again: it counts them, asks for confirmation, starts the replay and watches it.
import type { Replay } from '../../admin/replays.ts'
import { toPath } from '../api-client.ts'
import { reportFailure } from '../problem.ts'
import {
  callAndPrint,
  callApi,
  confirmOrExit,
  listCommand,
  reportMisspelledFilter,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
  type CommandContext,
} from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { formatCount, formatTime, type Field } from '../output.ts'
import { Progress } from '../progress.ts'
import { findUnknownFlow } from '../unknown-flow.ts'
import { callAction } from './lanes.ts'

const FILTER = ['source', 'type', 'tenant', 'subject', 'flow', 'key', 'from', 'to', 'event'] as const
/** A replay places one page at a time, so a shorter interval would show nothing more. */
const POLL_EVERY = 250

const startCommand: Command = {
  name: 'replay start',
  description: 'replay stored events, behind live ones',
  options: {
    ...textOptions({ source: 'events of this source', type: 'events of this type', tenant: 'events of this tenant' }),
    ...textOptions({ subject: 'events of this subject, e.g. a user' }),
    ...textOptions({ flow: 'requires --key: events that entered that lane', key: 'requires --flow' }),
    ...textOptions({
      from: 'arrived at or after this time, e.g. 2026-01-31T12:00:00Z',
      to: 'arrived before this time',
      event: 'the event with this id',
    }),
    into: {
      type: 'string',
      placeholder: 'FLOW',
      multiple: true,
      description: 'replay only into this flow; repeatable',
    },
    ...textOptions({
      rate: 'maximum number of events in --per; default 100',
      per: 'period of --rate; default 1s',
      id: 'id of the replay; a repeated command with the same id starts nothing',
    }),
    all: { type: 'boolean', description: 'all stored events' },
    detach: { type: 'boolean', description: 'do not wait for the end of the replay' },
    yes: YES_OPTION,
  },
  run: async (context) => {
    const { args, output } = context
    const filter = args.texts(FILTER)
    if ((Object.keys(filter).length === 0) !== args.has('all')) {
      return reportMisuse(context, 'Pass a filter such as --source or --from, or --all for all stored events.')
    }
    for (const flow of args.all('into')) {
      const problem = await findUnknownFlow((call) => callApi(context, call), flow)
      if (problem !== undefined) return reportFailure(output, { kind: 'problem', problem })
    }
    const counted = await callApi(context, { method: 'GET', path: '/v1/replays/count', query: filter })
    if (counted.kind !== 'done') return reportFailure(output, counted)
    const { count } = counted.value as { readonly count: number }
    const misspelled = count === 0 ? await reportMisspelledFilter(context) : undefined
    if (misspelled !== undefined) return misspelled
    const { kind, location } = await context.connect()
    const no = await confirmOrExit(context, `Replay ${formatCount(count, 'event')} of ${location}?`)
    if (no !== undefined) return no
    const begun = await callApi(context, {
      method: 'POST',
      path: '/v1/replays',
      body: { filter, ...toReplayOptions(context) },
    })
    if (begun.kind !== 'done') return reportFailure(output, begun)
    const replay = begun.value as Replay
    if (kind === 'server' && !args.has('detach')) return watchReplay(context, replay)
    printReplay(context, replay)
    if (kind === 'own') output.note('The replay continues when the app runs.')
    return EXIT.done
  },
}

function toReplayOptions({ args }: CommandContext): object {
  const [rate, into] = [args.text('rate'), args.all('into')]
  return {
    ...args.texts(['id', 'per']),
    ...(rate !== undefined && { rate: Number(rate) }),
    ...(into.length > 0 && { into }),
  }
}

/** Watches until the replay ends. Interrupting the command does not cancel the replay. */
async function watchReplay(context: CommandContext, begun: Replay): Promise<ExitCode> {
  const { output, clock, signal } = context
  const progress = new Progress({ stream: output.stderr, clock, what: 'replay', total: begun.found })
  let replay = begun
  while (replay.state === 'running' && !signal.aborted) {
    await new Promise<void>((resolve) => clock.after(POLL_EVERY, resolve))
    const answer = await callApi(context, { method: 'GET', path: toPath('v1/replays', begun.id) })
    if (answer.kind !== 'done') return reportFailure(output, answer)
    replay = answer.value as Replay
    progress.update(replay.scanned)
  }
  progress.end()
  printReplay(context, replay)
  if (replay.state === 'running') output.note(`The replay continues: sluice replay show ${replay.id}`)
  const isHealthy = replay.state === 'done' || replay.state === 'running'
  return isHealthy && replay.failed === 0 ? EXIT.done : EXIT.failed
}

function printReplay({ output }: CommandContext, replay: Replay): void {
  if (output.asJson) return output.printJson(replay)
  const failed: Field = ['failed', replay.failed === 0 ? undefined : `${replay.failed}, last error: ${replay.error}`]
  output.fields([
    ['id', replay.id],
    ['state', replay.state],
    ['into', replay.into.join(', ')],
    ['endpoint', replay.endpoint],
    ['started', formatTime(replay.started)],
    ['ended', formatTime(replay.ended)],
    ['found', replay.found],
    ['scanned', replay.scanned],
    ['reached', formatTime(replay.reached)],
    ['placed', replay.placed],
    ['skipped', replay.skipped],
    ['gone', replay.gone],
    failed,
  ])
}

export const replay: readonly Command[] = [
  startCommand,
  listCommand<Replay>({
    name: 'replay list',
    description: 'list the last replays, newest first',
    path: '/v1/replays',
    columns: [
      'id',
      'state',
      { title: 'started', cell: ({ started }) => formatTime(started) },
      'found',
      { title: 'scanned', cell: ({ scanned }) => scanned },
      'placed',
      'failed',
    ],
    none: 'There are no replays.',
  }),
  {
    name: 'replay show',
    positionals: ['<id>'],
    description: 'show the progress of a replay',
    run: (context) => {
      const path = toPath('v1/replays', context.args.words[0] ?? '')
      return callAndPrint(context, { method: 'GET', path }, (one: Replay) => printReplay(context, one))
    },
  },
  {
    name: 'replay cancel',
    positionals: ['<id>'],
    description: 'cancel a replay; events it has placed still run',
    run: (context) => callAction(context, toPath('v1/replays', context.args.words[0] ?? '', 'cancel'), {}),
  },
  {
    name: 'replay resume',
    positionals: ['<id>'],
    description: 'continue a cancelled replay from where it stopped',
    run: (context) => callAction(context, toPath('v1/replays', context.args.words[0] ?? '', 'resume'), {}),
  },
]
