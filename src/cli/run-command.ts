// Finds the command, parses its arguments, runs it and returns the exit code. Expected errors never throw. The help texts
// come from the declarations of the commands.
import { systemClock } from '../clock.ts'
import { findClient } from './find-client.ts'
import { suggestName } from '../validate/closest-name.ts'
import { COMMON_OPTIONS, describeParseError, ParsedArguments, type Options } from './arguments.ts'
import type { ApiClient } from './api-client.ts'
import type { Command, CommandContext } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { exitOnWriteError, writeOutput, Output } from './output.ts'
import { reportError, reportCliError } from './problem.ts'

export interface CommandResult {
  readonly exit: ExitCode
  /** The command ran the app itself, which closes what it has opened. */
  readonly isLongRunning?: boolean
}

/** The options by which most programs print their version. */
const VERSION_OPTIONS: ReadonlySet<string> = new Set(['--version', '-v', '-V'])

export async function runCommand(typed: readonly string[]): Promise<CommandResult> {
  exitOnWriteError()
  const args = typed.map((arg) => (arg === '-h' ? '--help' : arg))
  if (VERSION_OPTIONS.has(args[0] ?? '')) return runCommand(['version', ...args.slice(1)])
  const at = countLeadingOptions(args)
  const words = args.slice(at)
  const [first = 'help', second = ''] = words
  if (first === 'help') return printUsage(formatOverview(COMMANDS))
  const command = findCommand(words)
  if (command === undefined) {
    const group = COMMANDS.filter(({ name }) => name.startsWith(`${first} `))
    const usage = group.length > 0 ? formatCommands(group) : formatOverview(COMMANDS)
    if (args.includes('--help')) return printUsage(usage)
    const guess = suggestCommand(first, second, group)
    return reportUsageError(
      args,
      `There is no command ${`${first} ${second}`.trimEnd()}.${guess}`,
      guess === '' ? usage : '',
    )
  }
  const length = command.name.split(' ').length
  const used = words.slice(0, length).join(' ') === command.name ? length : 1
  const given = parseArguments(command, [...args.slice(0, at), ...words.slice(used)])
  if (typeof given === 'string') return reportUsageError(args, given, formatUsage(command))
  if (given.has('help')) return printUsage(formatUsage(command))
  return { exit: await execute(command, given), isLongRunning: command.isLongRunning === true }
}

function printUsage(usage: string): CommandResult {
  writeOutput(`${usage}\n`)
  return { exit: EXIT.done }
}

/** The arguments could not be parsed, but `--json` among them is still recognised. The error comes last, because a long
    usage would scroll it away. */
function reportUsageError(args: readonly string[], message: string, usage: string): CommandResult {
  const { stdout, stderr } = process
  const out = new Output({ stdout, stderr, asJson: args.includes('--json'), isVerbose: false })
  if (usage !== '') out.note(`${usage}\n`)
  return { exit: reportCliError(out, 'USAGE_WRONG', message) }
}

/** Compares with the second words of the group's commands, or with the first words of all commands. */
function suggestCommand(first: string, second: string, group: readonly Command[]): string {
  if (group.length === 0) return suggestName(first, wordsOf(COMMANDS, 0), 'sluice ')
  return suggestName(second, wordsOf(group, 1), `sluice ${first} `)
}

function wordsOf(commands: readonly Command[], at: 0 | 1): readonly string[] {
  return [...new Set(commands.map(({ name }) => name.split(' ')[at] ?? ''))]
}

/** Returns how many arguments are common options, which may precede the command. */
function countLeadingOptions(args: readonly string[]): number {
  let at = 0
  for (let arg = args[at]; arg?.startsWith('--') === true; arg = args[at]) {
    at += COMMON_OPTIONS[arg.slice(2)]?.type === 'string' ? 2 : 1
  }
  return at
}

/** `findCommand` returns the command with the longest matching name. `sluice lanes` is short for `sluice lanes list`. */
function findCommand(words: readonly string[]): Command | undefined {
  for (const length of [3, 2, 1]) {
    const found = commandNamed(words.slice(0, length).join(' '))
    if (found !== undefined) return found
  }
  const [first = '', second = '--'] = words
  return second.startsWith('-') && second !== '--help' ? commandNamed(`${first} list`) : undefined
}

function commandNamed(words: string): Command | undefined {
  return COMMANDS.find((one) => one.name === words)
}

/** Returns a text if the arguments are wrong. */
function parseArguments(command: Command, args: readonly string[]): ParsedArguments | string {
  try {
    const given = new ParsedArguments(args, { ...COMMON_OPTIONS, ...command.options })
    const { positionals = [] } = command
    const least = positionals.filter((name) => name.startsWith('<')).length
    if (given.has('help') || (given.words.length >= least && given.words.length <= positionals.length)) return given
    return given.words.length < least
      ? `${positionals[given.words.length]} is missing.`
      : `${given.words[positionals.length]} is unexpected.`
  } catch (error) {
    const text = describeParseError(error, { ...COMMON_OPTIONS, ...command.options })
    if (text !== undefined) return text
    throw error
  }
}

async function execute(command: Command, args: ParsedArguments): Promise<ExitCode> {
  const out = new Output({
    stdout: process.stdout,
    stderr: process.stderr,
    asJson: args.has('json'),
    isVerbose: args.has('verbose'),
  })
  const [url, key, config] = [args.text('url'), args.text('api-key'), args.text('config')]
  const where = { url, key, config, folder: process.cwd(), env: process.env, clock: systemClock }
  let caller: Promise<ApiClient> | undefined
  const api = async (): Promise<ApiClient> => {
    const found = await findClient(where)
    out.printVerbose(`Using ${found.location}`)
    return found
  }
  const stop = lazyStopSignal()
  const context: CommandContext = {
    args,
    output: out,
    target: where,
    clock: systemClock,
    get signal() {
      return stop()
    },
    connect: () => (caller ??= api()),
  }
  try {
    return await command.run(context)
  } catch (error) {
    return reportError(out, error)
  } finally {
    await (await caller?.catch(() => undefined))?.close()
  }
}

/** A command that reads the signal shuts down by itself. Any other command ends at once, as programs do by default. */
function lazyStopSignal(): () => AbortSignal {
  let stop: AbortController | undefined
  return () => {
    if (stop !== undefined) return stop.signal
    const made = new AbortController()
    stop = made
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => made.abort())
    return made.signal
  }
}

function formatOverview(commands: readonly Command[]): string {
  const what =
    'Commands use the running server if there is one. sluice <command> --help shows the options of a command.'
  return `sluice <command> [options]\n\n${formatCommands(commands)}\n\nOptions of every command:\n\n${formatOptions(COMMON_OPTIONS)}\n\n${what}`
}

function formatCommands(commands: readonly Command[]): string {
  return alignColumns(commands.map((command) => [formatHead(command), command.description] as const))
}

function formatUsage(command: Command): string {
  const own = Object.keys(command.options ?? {}).length === 0 ? '' : `${formatOptions(command.options ?? {})}\n\n`
  return `sluice ${formatHead(command)}\n\n  ${command.description}\n\n${own}${formatOptions(COMMON_OPTIONS)}`
}

function formatHead({ name: words, positionals = [] }: Command): string {
  return [words, ...positionals].join(' ')
}

function formatOptions(options: Options): string {
  return alignColumns(
    Object.entries(options).map(([name, { type, placeholder: value = name.toUpperCase(), description: says }]) => [
      type === 'boolean' ? `--${name}` : `--${name}=${value}`,
      says,
    ]),
  )
}

function alignColumns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}
