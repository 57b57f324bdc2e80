// `Command` is a command as data: the usage, the completion, the docs and the program read the same declaration.
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Clock } from '../clock.ts'
import type { ConnectOptions } from './find-client.ts'
import type { ParsedArguments, Option, Options } from './arguments.ts'
import type { ApiResult, ApiCall, ApiClient, ApiProblem } from './api-client.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { escapeText, type Column, type Output } from './output.ts'
import { reportFailure, reportCliError } from './problem.ts'
import { findUnknownFlow, suggestSource } from './unknown-flow.ts'

export interface Command {
  /** e.g. `'dead retry'` */
  readonly name: string
  /** In order: `'<id>'`, or `'[id]'` if it is optional. */
  readonly positionals?: readonly string[]
  readonly description: string
  readonly options?: Options
  /** The command runs the app until it is asked to stop. */
  readonly isLongRunning?: boolean
  readonly run: (context: CommandContext) => Promise<ExitCode>
}

export interface CommandContext {
  readonly args: ParsedArguments
  readonly output: Output
  readonly target: ConnectOptions
  readonly clock: Clock
  /** Aborted when the command must stop. */
  readonly signal: AbortSignal
  /** Returns the client of the API. It is looked up once, and only if a command needs it. */
  readonly connect: () => Promise<ApiClient>
}

export const YES_OPTION: Option = { type: 'boolean', description: 'skip the confirmation' }

export const PAGE_OPTIONS: Options = {
  limit: { type: 'string', placeholder: 'N', description: 'maximum number of items, 1 to 1000; default 100' },
  cursor: { type: 'string', placeholder: 'NEXT', description: 'continue after the previous page' },
}

export function textOptions(descriptions: Readonly<Record<string, string>>): Options {
  return Object.fromEntries(
    Object.entries(descriptions).map(([name, what]) => [
      name,
      { type: 'string', placeholder: name.toUpperCase(), description: what },
    ]),
  )
}

/** `callApi` waits and retries on 429: a long export makes more calls in a minute than one address may. */
export async function callApi({ args, connect, clock }: CommandContext, call: ApiCall): Promise<ApiResult> {
  const caller = await connect()
  for (let tries = 1; ; tries++) {
    const answer = await caller.call(call)
    const later = answer.kind === 'problem' ? answer.retryAfter : undefined
    if (answer.kind === 'problem' && (later === undefined || tries > MAX_CALLS))
      return { ...answer, problem: nameOption(args, answer.problem) }
    if (later === undefined) return answer
    await new Promise<void>((resolve) => clock.after(later, resolve))
  }
}

const MAX_CALLS = 20

/** The API names a field of the query or the body. People know it as the option that they gave. */
function nameOption(args: ParsedArguments, problem: ApiProblem): ApiProblem {
  const [, name = '', rule = ''] = /^(?:query|body): ([\w-]+): (.*)$/s.exec(problem.detail) ?? []
  if (args.text(name) === undefined) return problem
  const detail = rule.startsWith('it must') ? `--${name} ${rule.slice('it '.length)}` : `--${name}: ${rule}`
  return { ...problem, detail, fix: '' }
}

/**
 * `callAndPrint` calls the API and prints the result. The caller knows the route's response type. `exitOf` is for calls whose
 * result can be a failure although the API responds with 200.
 */
export async function callAndPrint<T = never>(
  context: CommandContext,
  call: ApiCall,
  print: (value: T) => void,
  exitOf: (value: T) => ExitCode = () => EXIT.done,
): Promise<ExitCode> {
  const answer = await callApi(context, call)
  if (answer.kind !== 'done') return reportFailure(context.output, answer)
  const value = answer.value as T
  if (context.output.asJson) context.output.printJson(value)
  else print(value)
  return exitOf(value)
}

export interface ListPage<T> {
  readonly items: readonly T[]
  readonly next?: string
}

interface ListDeclaration<T> extends Omit<Command, 'run'> {
  readonly path: string | ((context: CommandContext) => string)
  /** Default: the given text options, under their own names. */
  readonly query?: (context: CommandContext) => Readonly<Record<string, string>>
  readonly columns: readonly Column<T>[]
  /** The text for an empty list. */
  readonly none: string
}

/** `listCommand` prints one page of a list and how to get the next. */
export function listCommand<T>(declared: ListDeclaration<T>): Command {
  const { path, query, columns, none, ...command } = declared
  const texts = Object.keys(command.options ?? {})
  return {
    ...command,
    run: async (context) => {
      const { output } = context
      const answer = await callApi(context, {
        method: 'GET',
        path: typeof path === 'string' ? path : path(context),
        query: query?.(context) ?? context.args.texts(texts),
      })
      if (answer.kind !== 'done') return reportFailure(output, answer)
      const { items, next } = answer.value as ListPage<T>
      const misspelled = items.length === 0 ? await reportMisspelledFilter(context) : undefined
      if (misspelled !== undefined) return misspelled
      if (output.asJson) output.printJson(answer.value)
      else output.table(columns, items, none)
      if (next !== undefined && !output.asJson) output.note(`More items: --cursor=${escapeText(next)}`)
      return EXIT.done
    },
  }
}

/** `reportMisspelledFilter` is for a filter that matches nothing: it rejects an unknown `--flow`, and asks about `--source`. */
export async function reportMisspelledFilter(context: CommandContext): Promise<ExitCode | undefined> {
  const { args, output } = context
  const call = (one: ApiCall): Promise<ApiResult> => callApi(context, one)
  const [flow, source] = [args.text('flow'), args.text('source')]
  const problem = flow === undefined ? undefined : await findUnknownFlow(call, flow)
  if (problem !== undefined) return reportFailure(output, { kind: 'problem', problem })
  const question = source === undefined ? '' : await suggestSource(call, source)
  if (question !== '') output.note(escapeText(`The app declares no source ${JSON.stringify(source)}. ${question}`))
  return undefined
}

/** `callAndConfirm` is for calls whose result is only that they succeeded. */
export function callAndConfirm(context: CommandContext, call: ApiCall): Promise<ExitCode> {
  return callAndPrint(context, call, () => context.output.print('Done.'))
}

export function reportMisuse({ output }: CommandContext, message: string): ExitCode {
  return reportCliError(output, 'USAGE_WRONG', message)
}

/** `confirmOrExit` asks first, unless `--yes` confirms. It returns undefined to go on, or the exit code. */
export async function confirmOrExit(
  { args: given, output: out }: CommandContext,
  question: string,
): Promise<ExitCode | undefined> {
  if (given.has('yes')) return undefined
  if (!process.stdin.isTTY) {
    return reportCliError(
      out,
      'YES_NEEDED',
      escapeText(question),
      'The command needs a confirmation, and there is no terminal. Pass --yes.',
    )
  }
  const asking = createInterface({ input: process.stdin, output: out.stderr })
  try {
    // Ctrl-C or Ctrl-D at the question means no.
    const closed = once(asking, 'close').then(() => '')
    const said = await Promise.race([asking.question(`${escapeText(question)} [y/N] `).catch(() => ''), closed])
    if (/^y(?:es)?$/i.test(said.trim())) return undefined
    return reportCliError(out, 'NOT_CONFIRMED', 'Nothing was done.')
  } finally {
    asking.close()
  }
}
