// This file reads parts of a JSON text without changing them: numbers with all their digits, and the bytes of one item
// among many.
import { isTooDeep } from '../model/event.ts'
import type { Refusal } from '../receive/source.ts'
import { NOT_JSON, TOO_DEEP } from './json-body.ts'

/** `JsonSlice` holds the bytes of one valid JSON value: `parseJsonSlice` has validated it. */
export type JsonSlice = Uint8Array

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
/** No provider has longer names, and four of them fit into a dedupe id. */
const WORD_MAX = 250
const decoder = new TextDecoder('utf-8', { fatal: true })

/** `parseJsonSlice` validates the body without keeping the parsed values, so a large body costs one pass. */
export function parseJsonSlice(body: Uint8Array): { readonly value: JsonSlice } | Refusal {
  if (isTooDeep(body)) return TOO_DEEP
  try {
    JSON.parse(decoder.decode(body))
  } catch {
    return NOT_JSON
  }
  const isMarked = BYTE_ORDER_MARK.equals(body.subarray(0, BYTE_ORDER_MARK.length))
  const value = isMarked ? body.subarray(BYTE_ORDER_MARK.length) : body
  return { value: value.subarray(skipSpace(value, 0)) }
}

export function isObjectSlice(value: JsonSlice | undefined): value is JsonSlice {
  return value?.[0] === OPEN_OBJECT
}

export function isArraySlice(value: JsonSlice | undefined): value is JsonSlice {
  return value?.[0] === OPEN_LIST
}

/** `readMembers` returns the members of an object by name, and none for other values. If a name is repeated, the
    last member counts, as in JSON.parse. */
export function readMembers(value: JsonSlice | undefined): ReadonlyMap<string, JsonSlice> {
  const members = new Map<string, JsonSlice>()
  if (!isObjectSlice(value)) return members
  let at = skipSpace(value, 1)
  while (at < value.length && value[at] !== CLOSE_OBJECT) {
    const name = sliceText(value.subarray(at, (at = findValueEnd(value, at))))
    const start = skipSpace(value, skipSpace(value, at) + 1)
    at = findValueEnd(value, start)
    members.set(name, value.subarray(start, at))
    at = skipComma(value, at)
  }
  return members
}

/** `readElements` returns the elements of a list, and none for other values. */
export function readElements(value: JsonSlice | undefined): readonly JsonSlice[] {
  const elements: JsonSlice[] = []
  if (!isArraySlice(value)) return elements
  let at = skipSpace(value, 1)
  while (at < value.length && value[at] !== CLOSE_LIST) {
    const start = at
    at = findValueEnd(value, start)
    elements.push(value.subarray(start, at))
    at = skipComma(value, at)
  }
  return elements
}

/** `readWord` returns a text, or a number with all its digits. It returns undefined for other values, empty text,
    and text longer than any name. */
export function readWord(value: JsonSlice | undefined): string | undefined {
  const text = readText(value) ?? (isNumber(value) ? sliceText(value, false) : '')
  return text === '' || text.length > WORD_MAX || !text.isWellFormed() ? undefined : text
}

export function readText(value: JsonSlice | undefined): string | undefined {
  return value?.[0] === QUOTE ? sliceText(value) : undefined
}

/** `buildObject` builds an object from unchanged parts, and leaves out undefined ones. */
export function buildObject(members: Iterable<readonly [string, JsonSlice | undefined]>): Uint8Array {
  const parts: Uint8Array[] = []
  for (const [name, value] of members) {
    if (value === undefined) continue
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(name)}:`), value)
  }
  return Buffer.concat(parts.length === 0 ? [Buffer.from('{}')] : [...parts, Buffer.from('}')])
}

function isNumber(value: JsonSlice | undefined): value is JsonSlice {
  const byte = value?.[0] ?? 0
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
}

function sliceText(value: JsonSlice, isQuoted = true): string {
  const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()
  return isQuoted ? (JSON.parse(text) as string) : text
}

function skipComma(json: JsonSlice, from: number): number {
  const at = skipSpace(json, from)
  return json[at] === COMMA ? skipSpace(json, at + 1) : at
}

function skipSpace(json: JsonSlice, from: number): number {
  let at = from
  while (at < json.length && (json[at] ?? 0) <= 0x20) at++
  return at
}

function findValueEnd(json: JsonSlice, start: number): number {
  let depth = 0
  let at = start
  while (at < json.length) {
    const byte = json[at]
    if (byte === QUOTE) at = findTextEnd(json, at)
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth++
      at++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth--
      at++
    } else if (depth > 0) at++
    else return findScalarEnd(json, at)
    if (depth === 0) return at
  }
  return at
}

function findTextEnd(json: JsonSlice, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at + 1
}

function findScalarEnd(json: JsonSlice, start: number): number {
  let at = start
  for (; at < json.length; at++) {
    const byte = json[at] ?? 0
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_LIST || byte === COLON) break
  }
  return at
}
