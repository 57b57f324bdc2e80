// The options of the log, checked when the app is built: a slip of the pen must not become a log that says too little.
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { LogOptions } from './log.ts'

const OPTIONS: ReadonlySet<string> = new Set<keyof LogOptions>(['level', 'format', 'destination', 'redact'])
const LEVELS: readonly unknown[] = ['silent', 'error', 'warn', 'info', 'debug', 'trace']
const FORMATS: readonly unknown[] = ['json', 'pretty-lines']

/** `where` is what the option `log` is of. */
export function mustBeLogOptions(log: LogOptions | false | undefined, where: string): void {
  if (log === false || log === undefined) return
  const refuse = (what: string): never => {
    throw new SluiceError('CONFIG_INVALID', `${where}${what}`)
  }
  if (typeof log !== 'object' || log === null || Array.isArray(log))
    refuse(`log is ${said(log)}; it is { level: 'debug' } or the like, false for none, or left out.`)
  onlyKnown(log, OPTIONS, `${where}log.`)
  const { level, format, destination, redact } = log
  if (level !== undefined && !LEVELS.includes(level))
    refuse(`log.level is ${said(level)}; it is one of ${LEVELS.join(', ')}.`)
  if (format !== undefined && !FORMATS.includes(format))
    refuse(`log.format is ${said(format)}; it is one of ${FORMATS.join(', ')}.`)
  if (destination !== undefined && !isWritable(destination))
    refuse('log.destination is neither a stream to write to nor a pino logger; leave it out for standard output.')
  if (format !== undefined && destination !== undefined && 'isLevelEnabled' in destination)
    refuse('log.format would be ignored, since log.destination is a logger; say it there.')
  if (redact !== undefined && !isListOfNames(redact))
    refuse(`log.redact is ${said(redact)}; it is a list of names, say ['email', 'user.name'].`)
}

function isWritable(destination: unknown): boolean {
  if (typeof destination !== 'object' || destination === null) return false
  const { write, isLevelEnabled, child } = destination as Readonly<Record<string, unknown>>
  return typeof write === 'function' || (typeof isLevelEnabled === 'function' && typeof child === 'function')
}

function isListOfNames(redact: unknown): boolean {
  return Array.isArray(redact) && redact.every((name) => typeof name === 'string' && name !== '')
}

function said(value: unknown): string {
  return typeof value === 'string' || Array.isArray(value) ? JSON.stringify(value) : String(value)
}
