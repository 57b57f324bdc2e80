// A structured log of a lane's life: everything the emitter says, as one entry each, without payloads and what is known for a secret.
import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino'
import type { Clock } from '../clock.ts'
import type { Emitter } from './events.ts'
import { cleaner, type Cleaner, type Fields } from './log-fields.ts'
import { LOUDNESS } from './log-levels.ts'
import { prettyLines } from './log-lines.ts'
import { scrubbed } from './log-secrets.ts'

export interface LogOptions {
  /** 'info' unless said; that of the logger itself, if it is one's own. */
  readonly level?: 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'
  /** Not beside a logger of one's own: that decides. */
  readonly format?: 'json' | 'pretty-lines'
  /** Standard output unless said. A logger of one's own writes its own time; the engine's is then in `at`. */
  readonly destination?: NodeJS.WritableStream | Logger
  /** Further fields to hide: names at any depth, or paths from the top (`user.email`). */
  readonly redact?: readonly string[]
}

/** What a logger's own runs have to hide as well. */
const cleaners = new WeakMap<Logger, Cleaner>()

/** Follows the emitter for as long as that lives. */
export function lifeLog(emitter: Emitter, options: LogOptions, clock: Clock): Logger {
  const clean = cleaner(options.redact)
  const own = isLogger(options.destination) ? options.destination : undefined
  const logger = own === undefined ? newLogger(options, clock) : childOf(own, options)
  cleaners.set(logger, clean)
  emitter.onAny((name, what) => {
    const level = LOUDNESS[name]
    if (!logger.isLevelEnabled(level)) return
    const fields = clean(what as unknown as Fields)
    logger[level](own === undefined ? fields : { ...fields, at: clock.now() }, name)
  })
  return logger
}

function isLogger(destination: LogOptions['destination']): destination is Logger {
  return destination !== undefined && 'isLevelEnabled' in destination
}

function childOf(own: Logger, { level }: LogOptions): Logger {
  return own.child({}, level === undefined ? {} : { level })
}

function newLogger(options: LogOptions, clock: Clock): Logger {
  const settings: LoggerOptions = {
    level: options.level ?? 'info',
    // Process and host are what whoever collects logs knows anyway.
    base: null,
    timestamp: () => `,"time":${clock.now()}`,
  }
  return pino(settings, streamOf(options))
}

function streamOf({ destination, format }: LogOptions): DestinationStream {
  const out = destination === undefined || isLogger(destination) ? process.stdout : destination
  const stream = { write: (line: string) => void out.write(line) }
  return format === 'pretty-lines' ? prettyLines(stream) : stream
}

export interface RunName {
  readonly flow: string
  readonly key: string
  readonly run: string
  readonly attempt: number
}

type Say = (message: string, fields?: Fields) => void

/** What a handler writes to: each entry says which run it is of. */
export interface RunLog {
  readonly debug: Say
  readonly info: Say
  readonly warn: Say
  readonly error: Say
}

export function runLog(logger: Logger, { flow, key, run, attempt }: RunName): RunLog {
  const clean = cleaners.get(logger) ?? PLAIN
  // Most runs write nothing, and to make one takes as long as to write a line.
  let made: Logger | undefined
  const say =
    (level: keyof RunLog): Say =>
    (message, fields = {}) => {
      if (!logger.isLevelEnabled(level)) return
      const child = (made ??= logger.child(clean({ flow, key, run, attempt })))
      // Whatever plain JavaScript hands in: a log call is no place to fail.
      const text = typeof message === 'string' ? message : String(message)
      child[level](apart(clean(fields)), scrubbed(text))
    }
  return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
}

const PLAIN = cleaner()

/** Names the logger itself writes: a second one of them in an entry would pass for the first. */
const TAKEN: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'pid', 'hostname', 'flow', 'key', 'run', 'attempt'])

function apart(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [TAKEN.has(name) ? `${name}_` : name, value]))
}

const SILENT: RunLog = { debug() {}, info() {}, warn() {}, error() {} }

/** The log of an app, and what its runs write to. */
export function runLogs(emitter: Emitter, options: LogOptions | false, clock: Clock): (run: RunName) => RunLog {
  if (options === false) return () => SILENT
  const logger = lifeLog(emitter, options, clock)
  return (run) => runLog(logger, run)
}
