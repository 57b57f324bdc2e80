// The structured log: one entry per event of the emitter, without payloads and recognised secrets.
import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino'
import type { Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import { assertKnownOptions } from '../../validate/options.ts'
import type { Emitter, EventName } from '../emitter.ts'
import { createFieldRedactor, type FieldRedactor, type LogFields } from './fields.ts'
import { EVENT_LOG_LEVELS } from './levels.ts'
import { toSafeJson } from '../explain/format.ts'
import { RepeatedRefusals } from './repeated-refusals.ts'
import { redact } from './redact.ts'

export interface LogOptions {
  /** The default is 'info', or the level of your own logger. */
  readonly level?: 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'
  /** Rejected together with your own logger, which has its own format. */
  readonly format?: 'json' | 'pretty-lines'
  /** The default is standard output. Your own logger writes its own time; the engine's time is then in `at`. */
  readonly destination?: NodeJS.WritableStream | Logger
  /** More fields to hide: names at any depth, or paths from the top (`user.email`). */
  readonly redact?: readonly string[]
}

const LEVELS: readonly unknown[] = ['silent', 'error', 'warn', 'info', 'debug', 'trace']
const FORMATS: readonly unknown[] = ['json', 'pretty-lines']

/** `assertLogOptions` rejects a typo, which could silence the log. `where` names the call in the error. */
export function assertLogOptions(log: LogOptions | false | undefined, where: string): void {
  if (log === false || log === undefined) return
  const refuse = (message: string): never => {
    throw new SluiceError('CONFIG_INVALID', `${where}${message}`)
  }
  if (typeof log !== 'object' || log === null || Array.isArray(log))
    refuse(
      `log must be an object such as { level: 'debug' }, or false; got ${formatOption(log)}. Omit it for the default.`,
    )
  assertKnownOptions(log, ['level', 'format', 'destination', 'redact'], `${where}log.`)
  const { level, format, destination, redact: hidden } = log
  if (level !== undefined && !LEVELS.includes(level))
    refuse(`log.level must be one of ${LEVELS.join(', ')}; got ${formatOption(level)}.`)
  if (format !== undefined && !FORMATS.includes(format))
    refuse(`log.format must be one of ${FORMATS.join(', ')}; got ${formatOption(format)}.`)
  if (destination !== undefined && !isWritable(destination))
    refuse('log.destination must be a writable stream or a pino logger. Omit it for standard output.')
  if (format !== undefined && destination !== undefined && 'isLevelEnabled' in destination)
    refuse('log.format must be omitted if log.destination is a logger. Set the format in the logger.')
  if (hidden !== undefined && !isListOfNames(hidden))
    refuse(`log.redact must be a list of names such as ['email', 'user.name']; got ${formatOption(hidden)}.`)
}

function isWritable(destination: unknown): boolean {
  if (typeof destination !== 'object' || destination === null) return false
  const { write, isLevelEnabled, child } = destination as Readonly<Record<string, unknown>>
  return typeof write === 'function' || (typeof isLevelEnabled === 'function' && typeof child === 'function')
}

function isListOfNames(names: unknown): boolean {
  return Array.isArray(names) && names.every((name) => typeof name === 'string' && name !== '')
}

function formatOption(value: unknown): string {
  return typeof value === 'string' || Array.isArray(value) ? JSON.stringify(value) : String(value)
}

/** The redactor of each logger, so that the run logs of a logger hide the same fields. */
const redactors = new WeakMap<Logger, FieldRedactor>()

/** `createEventLog` writes the events of `emitter` for as long as the emitter lives. */
export function createEventLog(
  emitter: Emitter,
  options: LogOptions,
  clock: Clock,
  refusals: RepeatedRefusals = new RepeatedRefusals(clock),
): Logger {
  const clean = createFieldRedactor(options.redact)
  const own = isLogger(options.destination) ? options.destination : undefined
  const logger = own === undefined ? createLogger(options, clock) : createChildLogger(own, options)
  redactors.set(logger, clean)
  const write = (name: EventName, what: LogFields): void => {
    const level = EVENT_LOG_LEVELS[name]
    if (!logger.isLevelEnabled(level)) return
    const { ms } = what
    const fields = clean(typeof ms === 'number' ? { ...what, ms: roundForReading(ms) } : what)
    logger[level](own === undefined ? fields : { ...fields, at: clock.now() }, name)
  }
  refusals.onOmitted(({ name, fields, repeated }) => write(name, { ...fields, repeated }))
  emitter.onAny((name, what) => {
    if (logger.isLevelEnabled(EVENT_LOG_LEVELS[name]) && refusals.shouldWrite(name, what))
      write(name, what as unknown as LogFields)
  })
  return logger
}

/** Measured times have up to 16 digits, which are hard to read. */
function roundForReading(value: number): number {
  return Math.round(value * 1_000) / 1_000
}

function isLogger(destination: LogOptions['destination']): destination is Logger {
  return destination !== undefined && 'isLevelEnabled' in destination
}

function createChildLogger(logger: Logger, { level }: LogOptions): Logger {
  return logger.child({}, level === undefined ? {} : { level })
}

function createLogger(options: LogOptions, clock: Clock): Logger {
  const settings: LoggerOptions = {
    level: options.level ?? 'info',
    // Log collectors already know the process and the host.
    base: null,
    timestamp: () => `,"time":${clock.now()}`,
  }
  return pino(settings, createStream(options))
}

function createStream({ destination, format }: LogOptions): DestinationStream {
  const out = destination === undefined || isLogger(destination) ? process.stdout : destination
  const stream = { write: (line: string) => void out.write(line) }
  return format === 'pretty-lines' ? createPrettyWriter(stream) : stream
}

interface LineWriter {
  write(line: string): unknown
}

/** `createPrettyWriter` takes the JSON that the logger writes and passes on readable lines. */
function createPrettyWriter(out: LineWriter): LineWriter {
  return { write: (entry) => out.write(`${formatEntry(JSON.parse(entry) as Entry)}\n`) }
}

type Entry = Readonly<Record<string, unknown>>

const LEVEL_LABELS: Readonly<Record<string, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO ',
  40: 'WARN ',
  50: 'ERROR',
  60: 'FATAL',
}

/** Names and texts that match cannot contain quotes, control characters or line ends, so they need no quoting. */
const HARMLESS_NAME = /^[\w.-]+$/
const HARMLESS_TEXT = /^[\w .,:;()'/-]+$/

/** Most apps have no tenants, and most runs count nothing. */
function isWorthReading([name, value]: readonly [string, unknown]): boolean {
  if (name === 'tenant') return value !== ''
  return name !== 'counts' || typeof value !== 'object' || value === null || Object.keys(value).length > 0
}

function formatEntry({ level, time, msg, ...fields }: Entry): string {
  const named = Object.entries(fields)
    .filter(isWorthReading)
    .map(
      ([name, value]) =>
        ` ${HARMLESS_NAME.test(name) ? name : toSafeJson(name)}=${toSafeJson(typeof value === 'number' ? roundForReading(value) : value)}`,
    )
  const text = typeof msg === 'string' && HARMLESS_TEXT.test(msg) ? msg : toSafeJson(msg ?? '')
  return `${new Date(Number(time)).toISOString()} ${LEVEL_LABELS[String(level)] ?? toSafeJson(level)} ${text}${named.join('')}`
}

export interface RunIdentity {
  readonly flow: string
  readonly key: string
  readonly run: string
  readonly attempt: number
}

type LogMethod = (message: string, fields?: LogFields) => void

/** `RunLog` is the log that a handler writes to. Each entry names its run. */
export interface RunLog {
  readonly debug: LogMethod
  readonly info: LogMethod
  readonly warn: LogMethod
  readonly error: LogMethod
}

export function createRunLog(logger: Logger, { flow, key, run, attempt }: RunIdentity): RunLog {
  const clean = redactors.get(logger) ?? DEFAULT_REDACTOR
  // The child logger is created on first use: most runs write nothing, and creating one costs as much as writing a
  // line.
  let made: Logger | undefined
  const say =
    (level: keyof RunLog): LogMethod =>
    (message, fields = {}) => {
      if (!logger.isLevelEnabled(level)) return
      const child = (made ??= logger.child(clean({ flow, key, run, attempt })))
      // Plain JavaScript may pass any value, and a log call must not throw.
      const text = typeof message === 'string' ? message : String(message)
      child[level](renameReserved(clean(fields)), redact(text))
    }
  return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
}

const DEFAULT_REDACTOR = createFieldRedactor()

/** The logger writes these names itself. A second field of the same name would replace the first for most readers. */
const RESERVED_FIELDS: ReadonlySet<string> = new Set([
  'level',
  'time',
  'msg',
  'pid',
  'hostname',
  'flow',
  'key',
  'run',
  'attempt',
])

function renameReserved(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [RESERVED_FIELDS.has(name) ? `${name}_` : name, value]),
  )
}

const SILENT_LOG: RunLog = { debug() {}, info() {}, warn() {}, error() {} }

export interface AppLog {
  readonly forRun: (run: RunIdentity) => RunLog
  /** Writes the remaining entries when the app stops. */
  readonly close: () => void
}

export function createAppLog(emitter: Emitter, options: LogOptions | false, clock: Clock): AppLog {
  if (options === false) return { forRun: () => SILENT_LOG, close() {} }
  const refusals = new RepeatedRefusals(clock)
  const logger = createEventLog(emitter, options, clock, refusals)
  return { forRun: (run) => createRunLog(logger, run), close: () => refusals.end() }
}
