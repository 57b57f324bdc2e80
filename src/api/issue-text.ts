// Explains in the words of the API what is wrong with a field. The texts of the validation library name its own types.
import type { z } from 'zod'
import { suggestName } from '../validate/closest-name.ts'
import { describeKind } from '../validate/options.ts'

type Issue = z.core.$ZodRawIssue

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/** What a size counts, by what has it. */
const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' items', set: ' items' }

/**
 * `describeIssue` returns the rule that a value breaks, as `it must be <rule>; got <value>`. A text is never repeated, because it
 * may be a secret in the wrong field.
 */
export function describeIssue(issue: Issue): string {
  const got = `got ${describeKind(issue.input)}`
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'it is missing'
      return `it must be ${KINDS[issue.expected] ?? issue.expected}; ${got}`
    case 'invalid_value':
      return `it must be ${issue.values.map(String).join(' or ')}; ${got}`
    case 'unrecognized_keys':
      return describeUnknown(issue.keys, issue.inst)
    case 'too_small':
      return `it must ${describeSize(issue.origin, 'at least', issue.minimum)}; ${describeGot(issue.input)}`
    case 'too_big':
      return `it must ${describeSize(issue.origin, 'at most', issue.maximum)}; ${describeGot(issue.input)}`
    case 'invalid_format':
      return `it must be ${FORMATS[issue.format] ?? 'in the documented format'}; ${got}`
    case 'not_multiple_of':
      return `it must be a multiple of ${issue.divisor}; ${got}`
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return `it is not in a form that this field accepts; ${got}`
  }
}

const FORMATS: Readonly<Record<string, string>> = { url: 'a URL', json_string: 'JSON', uuid: 'a UUID' }

function describeSize(origin: string, bound: string, size: number | bigint): string {
  const unit = UNITS[origin]
  return unit === undefined ? `be ${bound} ${size}` : `have ${bound} ${size}${unit}`
}

function describeGot(input: unknown): string {
  if (typeof input === 'string' || Array.isArray(input)) return `got ${input.length}`
  return `got ${describeKind(input)}`
}

/** The name of a field may be shown, unlike its value. */
function describeUnknown(keys: readonly string[], schema: unknown): string {
  const [first = ''] = keys
  const { shape = {} } = (schema as { readonly shape?: object } | undefined) ?? {}
  const known = Object.keys(shape)
  const name = JSON.stringify(first.slice(0, 60))
  const list = known.length === 0 ? 'There are no fields' : `The fields are ${known.join(', ')}`
  return `${name} is not a field.${suggestName(first, known)} ${list}`
}
