// `createPrettyWriter` prints each log entry as one line for people, whatever its texts contain.
import { toSafeJson } from '../explain/format.ts'

interface LineWriter {
  write(line: string): unknown
}

/** `createPrettyWriter` takes the JSON that the logger writes and passes on readable lines. */
export function createPrettyWriter(out: LineWriter): LineWriter {
  return { write: (entry) => out.write(`${formatEntry(JSON.parse(entry) as Entry)}\n`) }
}

type Entry = Readonly<Record<string, unknown>>

const LEVELS: Readonly<Record<string, string>> = {
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

function formatEntry({ level, time, msg, ...fields }: Entry): string {
  const named = Object.entries(fields).map(
    ([name, value]) => ` ${HARMLESS_NAME.test(name) ? name : toSafeJson(name)}=${toSafeJson(value)}`,
  )
  const text = typeof msg === 'string' && HARMLESS_TEXT.test(msg) ? msg : toSafeJson(msg ?? '')
  return `${new Date(Number(time)).toISOString()} ${LEVELS[String(level)] ?? toSafeJson(level)} ${text}${named.join('')}`
}
