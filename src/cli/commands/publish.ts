// `sluice publish` publishes one event from its options, or many from standard input, one JSON object per line.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { toPath } from '../api-client.ts'
import { callApi, reportMisuse, textOptions, type Command, type CommandContext } from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { escapeText } from '../output.ts'
import { reportFailure } from '../problem.ts'

interface Published {
  readonly id: string
  readonly kind: string
  readonly of?: string
}

const FIELDS = ['id', 'source', 'subject', 'tenant'] as const
/** A call has at most 1,000 events and 1 MB. */
const MAX_EVENTS = 500
const MAX_LENGTH = 200_000
const NOT_STORED: ReadonlySet<string> = new Set(['conflict', 'refused'])

export const publish: Command = {
  name: 'publish',
  positionals: ['[type]'],
  description: 'publish an event; without a type, publish each line of standard input, as JSON',
  options: textOptions({
    data: 'the data: JSON, @FILE, or - for standard input; none by default',
    id: 'the id of the event: a repeated call with it publishes once',
    source: 'the source of the event; default app',
    subject: 'the subject of the event, e.g. a user',
    tenant: 'the tenant of the event',
    at: 'publish at this time, e.g. 2026-01-31T12:00:00Z',
    to: 'publish only to these flows, separated by commas, or to one endpoint',
  }),
  run: async (context) => {
    const { args } = context
    const [type] = args.words
    if (type === undefined) {
      const given = [...FIELDS, 'data'].find((name) => args.text(name) !== undefined)
      if (given !== undefined)
        return reportMisuse(context, `--${given} needs a type; without one, each line of standard input has its own.`)
      return publishLines(context)
    }
    const data = readData(args.text('data'))
    if (data !== undefined && !isJson(data))
      return reportMisuse(context, '--data must be JSON; quote a text: \'"text"\'.')
    const fields = JSON.stringify({ type, ...args.texts(FIELDS) })
    // The data goes as it was written, with all digits of its numbers.
    const event = data === undefined ? fields : `${fields.slice(0, -1)},"data":${data}}`
    const sent = await send(context, event)
    const code = print(context, sent)
    if (typeof sent !== 'number' && !context.output.asJson) await printNotes(context, sent)
    return code
  },
}

async function publishLines(context: CommandContext): Promise<ExitCode> {
  let code: ExitCode = EXIT.done
  let isEmpty = true
  let batch: string[] = []
  let length = 0
  const flush = async (): Promise<boolean> => {
    if (batch.length === 0) return true
    const sent = await send(context, `[${batch.join(',')}]`)
    const printed = print(context, sent)
    if (printed !== EXIT.done) code = printed
    batch = []
    length = 0
    return Array.isArray(sent)
  }
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue
    isEmpty = false
    if (!isJson(line)) return reportMisuse(context, `Each line must be a JSON object; got ${line.slice(0, 80)}`)
    if (length + line.length > MAX_LENGTH || batch.length === MAX_EVENTS) if (!(await flush())) return code
    batch.push(line)
    length += line.length
  }
  if (isEmpty) context.output.note('Standard input has no events.')
  await flush()
  return code
}

async function send(context: CommandContext, text: string): Promise<readonly Published[] | ExitCode> {
  const query = context.args.texts(['at', 'to'])
  const result = await callApi(context, { method: 'POST', path: '/v1/events', query, text })
  if (result.kind !== 'done') return reportFailure(context.output, result)
  return (result.value as { readonly events: readonly Published[] }).events
}

function print({ output }: CommandContext, sent: readonly Published[] | ExitCode): ExitCode {
  if (typeof sent === 'number') return sent
  for (const one of sent) {
    if (output.asJson) output.printJson(one)
    else output.print(`${escapeText(one.id)} ${one.kind}${one.of === undefined ? '' : ` of ${escapeText(one.of)}`}`)
  }
  return sent.some(({ kind }) => NOT_STORED.has(kind)) ? EXIT.failed : EXIT.done
}

/** Says that no flow took an event, as `send` does. A key with the role `publish` may not read that. */
async function printNotes(context: CommandContext, sent: readonly Published[]): Promise<void> {
  for (const { id, of = id } of sent) {
    const answer = await callApi(context, { method: 'GET', path: toPath('v1/events', of) })
    const { note = '' } = answer.kind === 'done' ? (answer.value as { readonly note?: string }) : {}
    if (note !== '') context.output.note(escapeText(note))
  }
}

function readData(value: string | undefined): string | undefined {
  if (value === '-') return readFileSync(0, 'utf8')
  return value?.startsWith('@') === true ? readFileSync(value.slice(1), 'utf8') : value
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
