// `createContentFilter` compiles a filter over the content of events. A filter is data: subscribers send it as JSON, so it has a
// bounded size and depth, and no part of it is code or a regular expression.
import type { FlowEvent } from '../model/flow-event.ts'
import { describeKind, invalidOption, isObject } from '../validate/options.ts'
import { parsePath, PATH_RULE, readPath, type EventPath } from './paths.ts'

type Scalar = string | number | boolean | null

interface Comparisons {
  readonly eq?: Scalar
  readonly ne?: Scalar
  readonly gt?: string | number
  readonly gte?: string | number
  readonly lt?: string | number
  readonly lte?: string | number
  readonly in?: readonly Scalar[]
  readonly prefix?: string
  readonly exists?: boolean
}

type PathField = 'id' | 'source' | 'type' | 'time' | 'tenant' | 'subject' | 'data'

/** `ContentFilter` matches an event if each of its members does: a path with a value or comparisons, or `all`, `any` or `not`. */
export type ContentFilter = { readonly [Path in PathField]?: Scalar | Comparisons } & {
  readonly [path: `data.${string}` | `data[${string}` | `attributes.${string}` | `attributes[${string}`]:
    | Scalar
    | Comparisons
  readonly all?: readonly ContentFilter[]
  readonly any?: readonly ContentFilter[]
  readonly not?: ContentFilter
}

type Predicate = (event: FlowEvent) => boolean
type Test = (value: unknown) => boolean

const DEPTH_MAX = 8
const CONDITIONS_MAX = 100
const VALUES_MAX = 100
/** As JSON. Thousands of endpoints with a filter are in memory at once. */
const LENGTH_MAX = 8_192

/** `createContentFilter` throws an error that names the faulty part of the filter, e.g. `where.any[1]["data.total"].gt`. */
export function createContentFilter(value: unknown, option: string): Predicate {
  const budget = { conditions: CONDITIONS_MAX, option }
  const filter = compileFilter(value, option, DEPTH_MAX, budget)
  const { length } = JSON.stringify(value)
  if (length > LENGTH_MAX) {
    throw invalid(option, `at most ${LENGTH_MAX.toLocaleString('en')} characters as JSON`, `${length}`)
  }
  return filter
}

interface Budget {
  conditions: number
  /** The option that holds the whole filter. */
  readonly option: string
}

function compileFilter(given: unknown, at: string, depth: number, budget: Budget): Predicate {
  if (!isObject(given)) throw invalid(at, "an object such as { 'data.total': { gte: 100 } }", describeKind(given))
  if (depth === 0) throw invalid(budget.option, `nested at most ${DEPTH_MAX} deep`, `a deeper filter at ${shorten(at)}`)
  const members = Object.entries(given as object)
  if (members.length === 0) throw invalid(at, 'a filter with at least one condition', 'an empty one')
  if (members.length > CONDITIONS_MAX) throw tooMany(budget)
  return every(
    members.map(([name, value]: [string, unknown]) => {
      if (name === 'not') return negate(compileFilter(value, `${at}.not`, depth - 1, budget))
      if (name === 'all' || name === 'any') {
        const filters = compileList(value, `${at}.${name}`, depth - 1, budget)
        return name === 'all' ? every(filters) : some(filters)
      }
      const path = parsePath(name)
      const where = `${at}[${JSON.stringify(shorten(name))}]`
      if (path === undefined) throw invalid(where, `${PATH_RULE}, or all, any or not`, JSON.stringify(shorten(name)))
      if (--budget.conditions < 0) throw tooMany(budget)
      return compileCondition(path, value, where)
    }),
  )
}

function compileList(value: unknown, at: string, depth: number, budget: Budget): readonly Predicate[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw invalid(at, 'a list of at least one filter', Array.isArray(value) ? 'an empty list' : describeKind(value))
  }
  if (value.length > CONDITIONS_MAX) throw tooMany(budget)
  return value.map((one: unknown, n) => compileFilter(one, `${at}[${n}]`, depth, budget))
}

function compileCondition(path: EventPath, given: unknown, at: string): Predicate {
  if (isScalar(given)) return (event) => readPath(event, path) === given
  if (!isObject(given))
    throw invalid(at, 'a text, a finite number, true, false, null or comparisons', describeKind(given))
  const comparisons = Object.entries(given as object)
  if (comparisons.length === 0) throw invalid(at, `at least one of ${OPERATORS}`, 'none')
  const tests = comparisons.map(([name, operand]: [string, unknown]) => {
    const compile = Object.hasOwn(COMPARISONS, name) ? COMPARISONS[name as keyof Comparisons] : undefined
    if (compile === undefined) throw invalid(at, `comparisons by ${OPERATORS}`, JSON.stringify(shorten(name)))
    return compile(operand, `${at}.${name}`)
  })
  return (event) => {
    const value = readPath(event, path)
    return tests.every((test) => test(value))
  }
}

const COMPARISONS: Readonly<Record<keyof Comparisons, (operand: unknown, at: string) => Test>> = {
  eq: (operand, at) => {
    const wanted = assertScalar(operand, at)
    return (value) => value === wanted
  },
  ne: (operand, at) => {
    const unwanted = assertScalar(operand, at)
    return (value) => value !== unwanted
  },
  gt: compileOrder((value, bound) => value > bound),
  gte: compileOrder((value, bound) => value >= bound),
  lt: compileOrder((value, bound) => value < bound),
  lte: compileOrder((value, bound) => value <= bound),
  in: (operand, at) => {
    if (!Array.isArray(operand) || operand.length === 0 || operand.length > VALUES_MAX) {
      const got = Array.isArray(operand) ? `${operand.length} values` : describeKind(operand)
      throw invalid(at, `a list of 1 to ${VALUES_MAX} values`, got)
    }
    const wanted = new Set<unknown>(operand.map((one: unknown, n) => assertScalar(one, `${at}[${n}]`)))
    return (value) => wanted.has(value)
  },
  prefix: (operand, at) => {
    if (typeof operand !== 'string') throw invalid(at, 'a text', describeKind(operand))
    return (value) => typeof value === 'string' && value.startsWith(operand)
  },
  exists: (operand, at) => {
    if (typeof operand !== 'boolean') throw invalid(at, 'true or false', describeKind(operand))
    return (value) => (value !== undefined) === operand
  },
}
const OPERATORS = Object.keys(COMPARISONS).join(', ')

/** Numbers are compared with numbers and texts with texts, by their code units. Any other pair does not match. */
function compileOrder(compare: (value: string | number, bound: string | number) => boolean) {
  return (bound: unknown, at: string): Test => {
    if (!isScalar(bound) || (typeof bound !== 'string' && typeof bound !== 'number')) {
      throw invalid(at, 'a text or a finite number', describeKind(bound))
    }
    return (value) =>
      (typeof value === 'string' || typeof value === 'number') && typeof value === typeof bound && compare(value, bound)
  }
}

function assertScalar(value: unknown, at: string): Scalar {
  if (isScalar(value)) return value
  throw invalid(at, 'a text, a finite number, true, false or null', describeKind(value))
}

function isScalar(value: unknown): value is Scalar {
  if (typeof value === 'string') return value.isWellFormed()
  return value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}

function every(tests: readonly Predicate[]): Predicate {
  const [only] = tests
  return tests.length === 1 && only !== undefined ? only : (event) => tests.every((test) => test(event))
}

function some(tests: readonly Predicate[]): Predicate {
  return (event) => tests.some((test) => test(event))
}

function negate(test: Predicate): Predicate {
  return (event) => !test(event)
}

function tooMany({ option }: Budget): Error {
  return invalid(option, `a filter with at most ${CONDITIONS_MAX} conditions`, 'more')
}

function invalid(at: string, rule: string, got: string): Error {
  return invalidOption(`${at} must be ${rule}; got ${got}.`)
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100).toWellFormed()}…` : text
}
