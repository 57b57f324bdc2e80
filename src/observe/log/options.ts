// `assertLogOptions` checks the `log` option when the app is built, so that a typo cannot silence the log.
import { SluiceError } from '../../errors.ts'
import { assertKnownOptions } from '../../validate/options.ts'
import type { LogOptions } from './log.ts'

const OPTIONS: ReadonlySet<string> = new Set<keyof LogOptions>(['level', 'format', 'destination', 'redact'])
const LEVELS: readonly unknown[] = ['silent', 'error', 'warn', 'info', 'debug', 'trace']
const FORMATS: readonly unknown[] = ['json', 'pretty-lines']

/** `where` is the prefix of the error text: the call that the `log` option belongs to. */
export function assertLogOptions(log: LogOptions | false | undefined, where: string): void {
  if (log === false || log === undefined) return
  const refuse = (what: string): never => {
    throw new SluiceError('CONFIG_INVALID', `${where}${what}`)
  }
  if (typeof log !== 'object' || log === null || Array.isArray(log))
    refuse(
      `log must be an object such as { level: 'debug' }, or false; got ${formatOption(log)}. Omit it for the default.`,
    )
  assertKnownOptions(log, OPTIONS, `${where}log.`)
  const { level, format, destination, redact } = log
  if (level !== undefined && !LEVELS.includes(level))
    refuse(`log.level must be one of ${LEVELS.join(', ')}; got ${formatOption(level)}.`)
  if (format !== undefined && !FORMATS.includes(format))
    refuse(`log.format must be one of ${FORMATS.join(', ')}; got ${formatOption(format)}.`)
  if (destination !== undefined && !isWritable(destination))
    refuse('log.destination must be a writable stream or a pino logger. Omit it for standard output.')
  if (format !== undefined && destination !== undefined && 'isLevelEnabled' in destination)
    refuse('log.format must be omitted if log.destination is a logger. Set the format in the logger.')
  if (redact !== undefined && !isListOfNames(redact))
    refuse(`log.redact must be a list of names such as ['email', 'user.name']; got ${formatOption(redact)}.`)
}

function isWritable(destination: unknown): boolean {
  if (typeof destination !== 'object' || destination === null) return false
  const { write, isLevelEnabled, child } = destination as Readonly<Record<string, unknown>>
  return typeof write === 'function' || (typeof isLevelEnabled === 'function' && typeof child === 'function')
}

function isListOfNames(redact: unknown): boolean {
  return Array.isArray(redact) && redact.every((name) => typeof name === 'string' && name !== '')
}

function formatOption(value: unknown): string {
  return typeof value === 'string' || Array.isArray(value) ? JSON.stringify(value) : String(value)
}
