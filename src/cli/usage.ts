// How commands are used, made of their declarations.
import { COMMON, type Options } from './arguments.ts'
import type { Command } from './command.ts'

export function overviewOfAll(commands: readonly Command[]): string {
  const what = 'It operates an app by its running server where there is one; sluice <command> --help says more.'
  return `sluice <command> [options]\n\n${overview(commands)}\n\nOptions of every command:\n\n${optionsText(COMMON)}\n\n${what}`
}

export function overview(commands: readonly Command[]): string {
  return aligned(commands.map((command) => [headOf(command), command.says] as const))
}

export function usageOf(command: Command): string {
  const own = Object.keys(command.options ?? {}).length === 0 ? '' : `${optionsText(command.options ?? {})}\n\n`
  return `sluice ${headOf(command)}\n\n  ${command.says}\n\n${own}${optionsText(COMMON)}`
}

function headOf({ words, takes = [] }: Command): string {
  return [words, ...takes].join(' ')
}

function optionsText(options: Options): string {
  return aligned(
    Object.entries(options).map(([name, { type, value = name.toUpperCase(), says }]) => [
      type === 'boolean' ? `--${name}` : `--${name}=${value}`,
      says,
    ]),
  )
}

function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}
