// `sluice doctor`, `sluice migrate` and `sluice backup`: check the set-up for risks of losing data, apply the schema of
// the store, and copy it.
import { DEFAULTS } from '../../defaults.ts'
import { backupSqlite } from '../../store/sqlite/backup.ts'
import { isServerAddress } from '../../store/open.ts'
import type { StoreDurability } from '../../admin/stored-events.ts'
import { runChecks, type Check } from '../checks.ts'
import { openLocalClient } from '../find-client.ts'
import { reportMisuse, type Command, type CommandContext } from '../command.ts'
import { EXIT } from '../exit.ts'
import { redirectStdout, escapeLines, type Field } from '../output.ts'
import { reportFailure } from '../problem.ts'

const STYLES = { ok: 'green', look: 'yellow', wrong: 'red' } as const

export const doctor: Command = {
  name: 'doctor',
  description: 'check the set-up and print fixes; exit code 1 if anything is wrong',
  run: async (context) => {
    const { output } = context
    redirectStdout()
    const checks = await runChecks(context)
    const isWrong = checks.some(({ state }) => state === 'wrong')
    if (output.asJson) output.printJson({ checks, defaults: DEFAULTS })
    else printChecks(context, checks)
    return isWrong ? EXIT.failed : EXIT.done
  },
}

export const migrate: Command = {
  name: 'migrate',
  description: 'update the schema of the store; the server also does this when it starts',
  run: async (context) => {
    const { args, output, target } = context
    if (args.text('url') !== undefined)
      return reportMisuse(context, 'migrate opens the store directly, so it accepts no --url.')
    const own = await openLocalClient(target)
    try {
      const answer = await own.call({ method: 'GET', path: '/v1/store' })
      if (answer.kind !== 'done') return reportFailure(output, answer)
      const { bytes, because } = answer.value as StoreDurability
      if (output.asJson) output.printJson(answer.value)
      else output.print(`The store is open and has the schema of this release: ${bytes} bytes, ${because}.`)
      return EXIT.done
    } finally {
      await own.close()
    }
  },
}

/** `backup` copies the store's file while a process uses it. It needs no server: any reader may read the file. */
export const backup: Command = {
  name: 'backup',
  positionals: ['<file>', '<copy>'],
  description: 'copy a SQLite store while it is in use, with every event acknowledged before',
  run: async (context) => {
    const { args, output } = context
    const [file = '', copy = ''] = args.words
    if (isServerAddress(file))
      return reportMisuse(
        context,
        'backup copies the file of a SQLite store; got a server address. Pass the path of the file.',
      )
    const made = backupSqlite(file, copy)
    if (output.asJson) output.printJson(made)
    else output.print(`${made.file} has ${made.events} events in ${made.bytes} bytes, and is intact.`)
    return EXIT.done
  },
}

function printChecks({ output }: CommandContext, checks: readonly Check[]): void {
  // What is wrong comes last, because the defaults would scroll it away.
  output.print(output.paint('bold', 'defaults'))
  output.fields(Object.entries(DEFAULTS).map(([name, value]): Field => [`  ${name}`, formatValue(value)]))
  output.print(`\n${output.paint('bold', 'checks')}`)
  for (const { name, state, what, fix } of checks) {
    output.print(`${output.paint(STYLES[state], state.padEnd(5))}  ${name.padEnd(13)}  ${indentLines(what)}`)
    if (fix !== undefined && state !== 'ok') output.print(`${INDENT}${indentLines(fix)}`)
  }
}

const INDENT = ' '.repeat(22)

function indentLines(text: string): string {
  return escapeLines(text).replaceAll('\n', `\n${INDENT}`)
}

function formatValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([name, one]) => `${name} ${Array.isArray(one) ? one.join(' ') : String(one)}`)
    .join(', ')
}
