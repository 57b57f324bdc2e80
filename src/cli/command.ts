// `Command` is a command as data: the usage, the completion, the docs and the program read the same declaration.
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Clock } from '../clock.ts'
import type { ConnectOptions } from './find-client.ts'
import type { ParsedArguments, Option, Options } from './arguments.ts'
import type { ApiResult, ApiCall, ApiClient } from './api-client.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { escapeText, type Column, type Output } from './output.ts'
import { reportFailure, reportCliError } from './problem.ts'

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
export async function callApi({ connect: api, clock }: CommandContext, call: ApiCall): Promise<ApiResult> {
  const caller = await api()
  for (let tries = 1; ; tries++) {
    const answer = await caller.call(call)
    const later = answer.kind === 'problem' ? answer.retryAfter : undefined
    if (later === undefined || tries > MAX_CALLS) return answer
    await new Promise<void>((resolve) => clock.after(later, resolve))
  }
}

const MAX_CALLS = 20

/** `callAndPrint` calls the API and prints the result. The caller knows the route's response type. */
export async function callAndPrint(
  context: CommandContext,
  call: ApiCall,
  print: (value: never) => void,
): Promise<ExitCode> {
  const answer = await callApi(context, call)
  if (answer.kind !== 'done') return reportFailure(context.output, answer)
  if (context.output.asJson) context.output.printJson(answer.value)
  else print(answer.value as never)
  return EXIT.done
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
    run: (context) => {
      const call = {
        method: 'GET',
        path: typeof path === 'string' ? path : path(context),
        query: query?.(context) ?? context.args.texts(texts),
      } as const
      return callAndPrint(context, call, ({ items, next }: ListPage<T>) => {
        context.output.table(columns, items, none)
        if (next !== undefined) context.output.note(`More items: --cursor=${escapeText(next)}`)
      })
    },
  }
}

/** `callAndConfirm` is for calls whose result is only that they succeeded. */
export function callAndConfirm(context: CommandContext, call: ApiCall): Promise<ExitCode> {
  return callAndPrint(context, call, () => context.output.print('Done.'))
}

export function reportMisuse({ output: out }: CommandContext, what: string): ExitCode {
  return reportCliError(out, 'USAGE_WRONG', what)
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
