// `Command` is a command as data: the usage, the completion, the docs and the program read the same declaration.
import type { Clock } from '../clock.ts'
import type { ConnectOptions } from './find-client.ts'
import type { ParsedArguments, Option, Options } from './arguments.ts'
import type { ApiResult, ApiCall, ApiClient } from './api-client.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { escapeText, type Output } from './output.ts'
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
  readonly run: (scene: CommandContext) => Promise<ExitCode>
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

/**
 * `callAndPrint` calls the API, prints the result and returns the exit code. The caller knows the route's response
 * type.
 */
export async function callAndPrint(
  scene: CommandContext,
  call: ApiCall,
  print: (value: never) => void,
): Promise<ExitCode> {
  const answer = await callApi(scene, call)
  if (answer.kind !== 'done') return reportFailure(scene.output, answer)
  if (scene.output.asJson) scene.output.printJson(answer.value)
  else print(answer.value as never)
  return EXIT.done
}

export interface ListPage<T> {
  readonly items: readonly T[]
  readonly next?: string
}

/** `callAndPrintPage` prints one page of a list and how to get the next. */
export function callAndPrintPage(
  scene: CommandContext,
  call: ApiCall,
  print: (items: never) => void,
): Promise<ExitCode> {
  return callAndPrint(scene, call, ({ items, next }: ListPage<unknown>) => {
    print(items as never)
    if (next !== undefined) scene.output.note(`More items: --cursor=${escapeText(next)}`)
  })
}

export function reportMisuse({ output: out }: CommandContext, what: string): ExitCode {
  return reportCliError(out, 'USAGE_WRONG', what)
}
