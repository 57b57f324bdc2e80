// `sluice dead`: dead letters and unrouted events, one by id or all of a filter, counted first.
import { open } from 'node:fs/promises'
import { toSafeJson } from '../../observe/explain/format.ts'
import { toPath } from '../api-client.ts'
import { reportFailure } from '../problem.ts'
import {
  callAndPrint,
  callApi,
  confirmOrExit,
  listCommand,
  PAGE_OPTIONS,
  reportMisspelledFilter,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
  type ListPage,
  type CommandContext,
} from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { waitForDrain, writeOutput, formatCount, formatDuration, formatTime } from '../output.ts'
import { Progress } from '../progress.ts'
import { callAction } from './lanes.ts'

interface DeadLetter {
  readonly kind: 'run' | 'unrouted'
  readonly id: string
  readonly flow: string
  readonly key?: string
  readonly reason: string
  readonly error?: string
  readonly state?: string
  readonly at: number
  readonly tries: number
  readonly events: readonly string[]
  readonly attempts?: readonly { readonly at: number; readonly ms: number; readonly error: string }[]
  readonly contents?: readonly { readonly id: string; readonly source: string; readonly type: string }[]
}

const FILTER = {
  ...textOptions({
    flow: 'dead letters of this flow',
    key: 'dead letters of this key',
    tenant: 'dead letters of this tenant',
    subject: 'dead letters with an event of this subject, e.g. a user',
    from: 'died at or after this time, e.g. 2026-01-31T12:00:00Z',
    to: 'died before this time',
  }),
  unrouted: { type: 'boolean', description: 'unrouted events instead of dead letters' },
} as const

const COUNT = '/v1/dead-letters/count'

function toFilter({ args }: CommandContext): Readonly<Record<string, string>> {
  const kind = args.has('unrouted') ? { kind: 'unrouted' } : {}
  return { ...args.texts(['flow', 'key', 'tenant', 'subject', 'from', 'to']), ...kind }
}

const list = listCommand<DeadLetter>({
  name: 'dead list',
  description: 'list dead letters, newest first',
  options: { ...FILTER, ...PAGE_OPTIONS },
  path: '/v1/dead-letters',
  query: (context) => ({ ...toFilter(context), ...context.args.texts(['limit', 'cursor']) }),
  columns: [
    'id',
    'flow',
    'key',
    { title: 'died', cell: ({ at }) => formatTime(at) },
    'tries',
    { title: 'events', cell: ({ events }) => events.length },
    'state',
    { title: 'why', cell: ({ reason, error, attempts }) => attempts?.at(-1)?.error ?? error ?? reason },
  ],
  none: 'There are no dead letters.',
})

const countCommand: Command = {
  name: 'dead count',
  description: 'count the dead letters of a filter, including retried ones that have not ended',
  options: FILTER,
  run: async (context) => {
    const { output } = context
    const counted = await countDeadLetters(context, toFilter(context))
    if (counted.kind === 'exit') return counted.exit
    if (output.asJson) output.printJson(counted.value)
    else output.print(`${formatCount(counted.count, 'dead letter')}.`)
    return EXIT.done
  },
}

const showCommand: Command = {
  name: 'dead show',
  positionals: ['<id>'],
  description: 'show a dead letter with its attempts and events',
  run: (context) => {
    const path = toPath('v1/dead-letters', context.args.words[0] ?? '')
    return callAndPrint(context, { method: 'GET', path }, (deadLetter: DeadLetter) => {
      const { output } = context
      output.fields([
        ['id', deadLetter.id],
        ['flow', deadLetter.flow],
        ['key', deadLetter.key],
        ['died', formatTime(deadLetter.at)],
        ['state', deadLetter.state],
        ['reason', deadLetter.reason],
        ['error', deadLetter.error],
      ])
      for (const { at, ms, error } of deadLetter.attempts ?? []) {
        output.fields([['attempt', `${formatTime(at)}, after ${formatDuration(ms)}: ${error}`]])
      }
      for (const { id, source, type } of deadLetter.contents ?? [])
        output.fields([['event', `${id}  ${source}/${type}`]])
    })
  },
}

const QUESTIONS = { retry: 'Retry', drop: 'Permanently drop' } as const
const PAST_TENSE = { retry: 'retried', drop: 'dropped' } as const

const actionCommands: readonly Command[] = (['retry', 'drop'] as const).map((act) => ({
  name: `dead ${act}`,
  positionals: ['[id]'],
  description:
    act === 'retry' ? 'retry one dead letter, or all of a filter' : 'drop one dead letter, or all of a filter',
  options: { ...FILTER, all: { type: 'boolean', description: 'all dead letters' }, yes: YES_OPTION },
  run: async (context) => {
    const [id] = context.args.words
    const filter = toFilter(context)
    const isFiltered = Object.keys(filter).length > 0 || context.args.has('all')
    if ((id === undefined) !== isFiltered) {
      return reportMisuse(context, 'Pass either an id, or a filter such as --flow, or --all.')
    }
    if (id === undefined) return actOnAll(context, act, filter)
    const { location } = await context.connect()
    const question = `This permanently drops the dead letter ${id} of ${location}. Continue?`
    const no = act === 'drop' ? await confirmOrExit(context, question) : undefined
    return no ?? callAction(context, toPath('v1/dead-letters', id, act), {})
  },
}))

async function actOnAll(
  context: CommandContext,
  act: 'retry' | 'drop',
  filter: Readonly<Record<string, string>>,
): Promise<ExitCode> {
  const { output } = context
  const counted = await countDeadLetters(context, filter)
  if (counted.kind === 'exit') return counted.exit
  if (counted.count === 0 && !output.asJson) {
    output.print('There are no such dead letters.')
    return EXIT.done
  }
  const { location } = await context.connect()
  const no = await confirmOrExit(
    context,
    `${QUESTIONS[act]} ${formatCount(counted.count, 'dead letter')} of ${location}?`,
  )
  if (no !== undefined) return no
  const body = Object.keys(filter).length === 0 ? { all: true } : filter
  const call = { method: 'POST', path: `/v1/dead-letters/${act}`, body } as const
  return callAndPrint(context, call, ({ count }: { readonly count: number }) => {
    output.print(`${PAST_TENSE[act]} ${formatCount(count, 'dead letter')}.`)
  })
}

type CountResult =
  | { readonly kind: 'count'; readonly count: number; readonly value: unknown }
  | { readonly kind: 'exit'; readonly exit: ExitCode }

async function countDeadLetters(
  context: CommandContext,
  query: Readonly<Record<string, string>>,
): Promise<CountResult> {
  const answer = await callApi(context, { method: 'GET', path: COUNT, query })
  if (answer.kind !== 'done') return { kind: 'exit', exit: reportFailure(context.output, answer) }
  const { count } = answer.value as { readonly count: number }
  const misspelled = count === 0 ? await reportMisspelledFilter(context) : undefined
  return misspelled === undefined ? { kind: 'count', count, value: answer.value } : { kind: 'exit', exit: misspelled }
}

const exportCommand: Command = {
  name: 'dead export',
  description: 'export dead letters with their events and bodies as JSON lines',
  options: { ...FILTER, ...textOptions({ out: 'output file; default standard output' }) },
  run: async (context) => {
    const filter = toFilter(context)
    const counted = await countDeadLetters(context, filter)
    if (counted.kind === 'exit') return counted.exit
    const file = context.args.text('out')
    const sink = file === undefined ? STDOUT_SINK : await openFileSink(file)
    const progress = new Progress({
      stream: context.output.stderr,
      clock: context.clock,
      what: 'exported',
      total: counted.count,
    })
    const failed = await exportPages(context, filter, async (lines, done) => {
      await sink.write(lines)
      progress.update(done)
    })
    await sink.end()
    progress.end()
    return failed ?? EXIT.done
  },
}

/** The target of an export. Write errors are thrown. */
interface ExportSink {
  write(lines: string): Promise<void>
  end(): Promise<void>
}

const STDOUT_SINK: ExportSink = {
  write: (lines) => {
    writeOutput(lines)
    return waitForDrain()
  },
  end: async () => {},
}

/** The file contains payloads, so only its owner may read it, as with the store. */
async function openFileSink(file: string): Promise<ExportSink> {
  const handle = await open(file, 'w', 0o600)
  return {
    write: (lines) => handle.writeFile(lines),
    end: async () => {
      // A pipe or a device cannot be synced.
      if ((await handle.stat()).isFile()) await handle.sync()
      await handle.close()
    },
  }
}

async function exportPages(
  context: CommandContext,
  filter: Readonly<Record<string, string>>,
  write: (lines: string, done: number) => Promise<void>,
): Promise<ExitCode | undefined> {
  let done = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const query = { ...filter, limit: '100', ...(cursor !== '' && { cursor }) }
    const answer = await callApi(context, { method: 'GET', path: '/v1/dead-letters/export', query })
    if (answer.kind !== 'done') return reportFailure(context.output, answer)
    const page = answer.value as ListPage<unknown>
    done += page.items.length
    await write(page.items.map((item) => `${toSafeJson(item)}\n`).join(''), done)
    cursor = page.next
  }
  return undefined
}

export const dead: readonly Command[] = [list, countCommand, showCommand, ...actionCommands, exportCommand]
