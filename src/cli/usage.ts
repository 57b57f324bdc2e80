// Builds the help texts from the declarations of the commands.
import { COMMON_OPTIONS, type Options } from './arguments.ts'
import type { Command } from './command.ts'

export function formatOverview(commands: readonly Command[]): string {
  const what =
    'Commands use the running server if there is one. sluice <command> --help shows the options of a command.'
  return `sluice <command> [options]\n\n${formatCommands(commands)}\n\nOptions of every command:\n\n${formatOptions(COMMON_OPTIONS)}\n\n${what}`
}

export function formatCommands(commands: readonly Command[]): string {
  return alignColumns(commands.map((command) => [formatHead(command), command.description] as const))
}

export function formatUsage(command: Command): string {
  const own = Object.keys(command.options ?? {}).length === 0 ? '' : `${formatOptions(command.options ?? {})}\n\n`
  return `sluice ${formatHead(command)}\n\n  ${command.description}\n\n${own}${formatOptions(COMMON_OPTIONS)}`
}

function formatHead({ name: words, positionals: takes = [] }: Command): string {
  return [words, ...takes].join(' ')
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
