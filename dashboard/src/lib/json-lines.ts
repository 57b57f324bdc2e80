// JSON as lines, and which of them differ from an earlier version. Everything is text for text nodes.

export interface JsonLine {
  readonly indent: number
  readonly key: string | undefined
  /** The text after the key: a value, or an opening or closing bracket. */
  readonly text: string
  readonly kind: 'string' | 'number' | 'other' | 'bracket'
  readonly comma: boolean
  /** What stood there before; undefined if the line is as it was. */
  readonly was?: string
}

/** The maximum number of lines to show; further lines are counted. */
export const MOST_LINES = 2_000
const LONGEST = 60

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** `linesOf` writes a value as indented lines. With `before`, lines that changed say what they were. */
export function linesOf(value: unknown, before?: unknown): readonly JsonLine[] {
  const lines: JsonLine[] = []
  const compare = before !== undefined
  write(value as Json, before as Json | undefined, { lines, indent: 0, key: undefined, comma: false, compare })
  return lines
}

interface Place {
  readonly lines: JsonLine[]
  readonly indent: number
  readonly key: string | undefined
  readonly comma: boolean
  readonly compare: boolean
}

function write(value: Json, before: Json | undefined, at: Place): void {
  const { lines, indent, key, comma, compare } = at
  if (lines.length >= MOST_LINES) return
  const isList = Array.isArray(value)
  const entries = isNested(value) ? Object.entries(value) : []
  if (entries.length === 0) {
    const changed = compare && !isSame(value, before)
    lines.push({
      indent,
      key,
      comma,
      text: isNested(value) ? (isList ? '[]' : '{}') : JSON.stringify(value),
      kind: typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : 'other',
      ...(changed && { was: before === undefined ? 'new' : `was ${short(before)}` }),
    })
    return
  }
  const old =
    isNested(before) && Array.isArray(before) === isList ? (before as Readonly<Record<string, Json>>) : undefined
  const isOther = compare && old === undefined
  const was = isOther ? (before === undefined ? 'new' : `was ${short(before)}`) : removedFrom(old, value)
  lines.push({
    indent,
    key,
    text: isList ? '[' : '{',
    kind: 'bracket',
    comma: false,
    ...(was !== undefined && { was }),
  })
  entries.forEach(([name, inner], index) => {
    write(inner, old?.[name], {
      lines,
      indent: indent + 1,
      key: isList ? undefined : name,
      comma: index < entries.length - 1,
      // Inside something new, only its first line says so.
      compare: compare && old !== undefined,
    })
  })
  lines.push({ indent, key: undefined, text: isList ? ']' : '}', kind: 'bracket', comma })
}

function isNested(value: Json | undefined): value is readonly Json[] | { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null
}

function isSame(one: Json, other: Json | undefined): boolean {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}

function removedFrom(old: Readonly<Record<string, Json>> | undefined, value: Json): string | undefined {
  if (old === undefined || !isNested(value)) return undefined
  const names = Object.keys(old).filter((name) => !Object.hasOwn(value, name))
  return names.length === 0 ? undefined : `without ${short(names.join(', '))}`
}

function short(value: Json): string {
  const text = typeof value === 'string' && value.includes(', ') ? value : JSON.stringify(value)
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}
