// The texts by which rows are ordered. The index of a table is a sorted set in which all scores are equal, so Redis orders its members
// by their bytes. A member is the text of the index, NUL, and the key of the row; no text of an index contains NUL.

const ZEROS = '0'.repeat(16)

/** `pad` writes a whole number so that texts sort like the numbers. */
export function pad(n: number): string {
  const text = String(Number.isInteger(n) && n > 0 ? n : Math.max(0, Math.floor(n)))
  return text.length >= ZEROS.length ? text : ZEROS.slice(text.length) + text
}

/** `quote` writes any text so that none is the beginning of another, without control characters. */
export function quote(text: string): string {
  return JSON.stringify(text)
}

/** The last byte of a group's name. Between it and `GROUP_END` are all members of the group. */
export const IN_GROUP = '\u0001'
const GROUP_END = '\u0002'

/** The end of all members that begin with a text and go on with a digit, a quote or an ASCII letter. */
export const PREFIX_END = '\u007F'

export function toMember(text: string, key: string): string {
  return `${text}\0${key}`
}

export function keyOfMember(member: string): string {
  return member.slice(member.indexOf('\0') + 1)
}

/** `Range` is a part of an index, from a text (included) to a text (excluded). */
export interface Range {
  readonly from: string
  readonly to: string
  readonly isReversed?: boolean
}

export function prefixRange(prefix: string): Range {
  return { from: prefix, to: prefix + PREFIX_END }
}

/** `groupRange` is the range of a group: `name` ends with `IN_GROUP`. */
export function groupRange(name: string): Range {
  return { from: name, to: name.slice(0, -1) + GROUP_END }
}
