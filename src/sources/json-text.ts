// Parts of a JSON text as they were written: digits that no number holds, and the bytes of one item among many.
import { isTooDeep } from '../model/depth.ts'
import type { Refusal } from '../receive/source.ts'
import { TOO_DEEP } from './json-body.ts'
import { refusal } from './signature.ts'

/** The bytes of one JSON value. Whoever reads it trusts that it is one: `writtenOf` has seen to that. */
export type Written = Uint8Array

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
/** No provider has a longer name for anything, and four of them fit into a dedupe id. */
const WORD_MAX = 250
const decoder = new TextDecoder('utf-8', { fatal: true })

/** Nothing is made of the values: a large body costs one look. */
export function writtenOf(body: Uint8Array): { readonly value: Written } | Refusal {
  if (isTooDeep(body)) return TOO_DEEP
  try {
    JSON.parse(decoder.decode(body))
  } catch {
    return refusal(
      'BODY_NOT_UNDERSTOOD',
      'The body is no JSON.',
      'Look at the content type and the body that were sent.',
    )
  }
  const isMarked = BYTE_ORDER_MARK.equals(body.subarray(0, BYTE_ORDER_MARK.length))
  const value = isMarked ? body.subarray(BYTE_ORDER_MARK.length) : body
  return { value: value.subarray(skipSpace(value, 0)) }
}

export function isWrittenObject(value: Written | undefined): value is Written {
  return value?.[0] === OPEN_OBJECT
}

export function isWrittenList(value: Written | undefined): value is Written {
  return value?.[0] === OPEN_LIST
}

/** Of an object by name, of anything else none. Of two with one name the last counts, as for every parser here. */
export function membersOf(value: Written | undefined): ReadonlyMap<string, Written> {
  const members = new Map<string, Written>()
  if (!isWrittenObject(value)) return members
  let at = skipSpace(value, 1)
  while (at < value.length && value[at] !== CLOSE_OBJECT) {
    const name = textOf(value.subarray(at, (at = endOf(value, at))))
    const start = skipSpace(value, skipSpace(value, at) + 1)
    at = endOf(value, start)
    members.set(name, value.subarray(start, at))
    at = afterComma(value, at)
  }
  return members
}

/** Of a list, of anything else none. */
export function elementsOf(value: Written | undefined): readonly Written[] {
  const elements: Written[] = []
  if (!isWrittenList(value)) return elements
  let at = skipSpace(value, 1)
  while (at < value.length && value[at] !== CLOSE_LIST) {
    const start = at
    at = endOf(value, start)
    elements.push(value.subarray(start, at))
    at = afterComma(value, at)
  }
  return elements
}

/** A text, or a number with all its digits. Undefined if it is neither, empty, or longer than any name. */
export function wordIn(value: Written | undefined): string | undefined {
  const text = textIn(value) ?? (isNumber(value) ? textOf(value, false) : '')
  return text === '' || text.length > WORD_MAX || !text.isWellFormed() ? undefined : text
}

export function textIn(value: Written | undefined): string | undefined {
  return value?.[0] === QUOTE ? textOf(value) : undefined
}

/** An object made of parts as they were written. Those that are undefined are left out. */
export function objectText(members: Iterable<readonly [string, Written | undefined]>): Uint8Array {
  const parts: Uint8Array[] = []
  for (const [name, value] of members) {
    if (value === undefined) continue
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(name)}:`), value)
  }
  return Buffer.concat(parts.length === 0 ? [Buffer.from('{}')] : [...parts, Buffer.from('}')])
}

function isNumber(value: Written | undefined): value is Written {
  const byte = value?.[0] ?? 0
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
}

function textOf(value: Written, isQuoted = true): string {
  const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()
  return isQuoted ? (JSON.parse(text) as string) : text
}

function afterComma(json: Written, from: number): number {
  const at = skipSpace(json, from)
  return json[at] === COMMA ? skipSpace(json, at + 1) : at
}

function skipSpace(json: Written, from: number): number {
  let at = from
  while (at < json.length && (json[at] ?? 0) <= 0x20) at++
  return at
}

/** Where the value that starts there ends. */
function endOf(json: Written, start: number): number {
  let depth = 0
  let at = start
  while (at < json.length) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfText(json, at)
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth++
      at++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth--
      at++
    } else if (depth > 0) at++
    else return endOfScalar(json, at)
    if (depth === 0) return at
  }
  return at
}

function endOfText(json: Written, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at + 1
}

function endOfScalar(json: Written, start: number): number {
  let at = start
  for (; at < json.length; at++) {
    const byte = json[at] ?? 0
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_LIST || byte === COLON) break
  }
  return at
}
