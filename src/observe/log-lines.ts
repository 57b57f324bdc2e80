// Log entries as lines for people: one entry, one line, whatever its texts contain.
import { json } from './explain-words.ts'

interface Written {
  write(line: string): unknown
}

/** Takes the JSON that the logger writes and passes on readable lines. */
export function prettyLines(out: Written): Written {
  return { write: (entry) => out.write(`${pretty(JSON.parse(entry) as Entry)}\n`) }
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

/** Words that can be nothing but words. */
const HARMLESS_NAME = /^[\w.-]+$/
const HARMLESS_TEXT = /^[\w .,:;()'/-]+$/

function pretty({ level, time, msg, ...fields }: Entry): string {
  const named = Object.entries(fields).map(
    ([name, value]) => ` ${HARMLESS_NAME.test(name) ? name : json(name)}=${json(value)}`,
  )
  const text = typeof msg === 'string' && HARMLESS_TEXT.test(msg) ? msg : json(msg ?? '')
  return `${new Date(Number(time)).toISOString()} ${LEVELS[String(level)] ?? json(level)} ${text}${named.join('')}`
}
