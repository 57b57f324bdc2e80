// The filters of a query, as far as tasks need them. Unknown filters are rejected as Notion rejects them, never ignored.
import { emptyOf, SCHEMA, type PropertyType, type StoredPage } from './page.ts'
import { invalid } from './refusal.ts'

type Matches = (page: StoredPage) => boolean
type Members = Readonly<Record<string, unknown>>

/** Notion takes `and` and `or` within one another twice, not more. */
const DEEPEST = 2

export function filterOf(filter: unknown, depth = 0): Matches {
  if (filter === undefined) return () => true
  const members = membersOf(filter, 'filter')
  for (const [word, combined] of [
    ['and', (all: readonly boolean[]) => all.every(Boolean)],
    ['or', (all: readonly boolean[]) => all.some(Boolean)],
  ] as const) {
    const parts = members[word]
    if (parts === undefined) continue
    if (!Array.isArray(parts)) throw invalid(`body.filter.${word} should be an array.`)
    if (depth >= DEEPEST) throw invalid('body.filter is nested too deeply.')
    const inner = parts.map((part) => filterOf(part, depth + 1))
    return (page) => combined(inner.map((matches) => matches(page)))
  }
  return ofProperty(members)
}

function ofProperty(members: Members): Matches {
  const name = String(members['property'])
  const known = SCHEMA[name] ?? Object.values(SCHEMA).find(({ id }) => id === name)
  if (known === undefined) throw invalid(`Could not find property with name or id: ${name}`)
  const { type } = known
  if (members[type] === undefined) throw invalid(`database property ${name} has type ${type}; the filter has not.`)
  const conditions = Object.entries(membersOf(members[type], `filter.${type}`))
  const [first, ...others] = conditions
  if (first === undefined || others.length > 0) throw invalid(`filter.${type} should have one condition.`)
  const test = condition(type, first[0], first[1])
  return (page) => test(page.values.get(name) ?? emptyOf(type))
}

type Test = (value: unknown) => boolean

function condition(type: PropertyType, word: string, wanted: unknown): Test {
  if (word === 'is_empty') return isEmpty
  if (word === 'is_not_empty') return (value) => !isEmpty(value)
  switch (`${type}.${word}`) {
    case 'people.contains':
      return (value) => (value as readonly { id: string }[]).some(({ id }) => id === wanted)
    case 'people.does_not_contain':
      return (value) => !(value as readonly { id: string }[]).some(({ id }) => id === wanted)
    case 'status.equals':
      return (value) => (value as { name: string } | null)?.name === wanted
    case 'status.does_not_equal':
      return (value) => (value as { name: string } | null)?.name !== wanted
    case 'number.equals':
      return (value) => value === wanted
    case 'number.greater_than':
      return (value) => typeof value === 'number' && value > Number(wanted)
    default:
      throw invalid(`filter.${type}.${word} is not known to the stand-in.`)
  }
}

function isEmpty(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0)
}

function membersOf(value: unknown, what: string): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members
  throw invalid(`body.${what} should be an object.`)
}
