// Tests content filters: each matches what a naive evaluator says, hostile ones are rejected with a message that names the
// faulty part, and no filter reads an event more often than it has conditions.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/errors.ts'
import { createContentFilter } from '../../src/flow/where.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'

const AT = Date.UTC(2026, 10, 19)

function event(data: unknown, over: object = {}): FlowEvent {
  const body = data === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(data))
  const named = { id: 'e1', source: 'shop', type: 'order.paid', time: AT, tenant: '', subject: 's', attributes: '' }
  return new FlowEvent({ ...named, body, ...over })
}

const matches = (where: unknown, data: unknown, over?: object): boolean =>
  createContentFilter(where, 'where')(event(data, over))

describe('a filter', () => {
  const order = { total: 120, country: 'DE', lines: [{ sku: 'a-1' }], 'a.b': { '"': 1 }, none: null, paid: true }
  it.each([
    [{ 'data.country': 'DE' }, true],
    [{ 'data.country': 'FR' }, false],
    [{ 'data.none': null }, true],
    [{ 'data.missing': null }, false],
    [{ 'data.total': '120' }, false],
    [{ 'data.total': { gt: 119.5, lte: 120 } }, true],
    [{ 'data.total': { gte: 121 } }, false],
    [{ 'data.total': { gt: '1' } }, false],
    [{ 'data.country': { gte: 'DE', lt: 'DF' } }, true],
    [{ 'data.country': { ne: 'FR' } }, true],
    [{ 'data.missing': { ne: 1 } }, true],
    [{ 'data.country': { in: ['FR', 'DE'] } }, true],
    [{ 'data.country': { in: ['FR', 7] } }, false],
    [{ 'data.lines[0].sku': { prefix: 'a-' } }, true],
    [{ 'data.lines[0].sku': { prefix: 'b' } }, false],
    [{ 'data.lines[1].sku': { exists: true } }, false],
    [{ 'data.lines.length': { exists: true } }, false],
    [{ 'data.none': { exists: true } }, true],
    [{ 'data.constructor': { exists: true } }, false],
    [{ 'data["a.b"]["\\""]': 1 }, true],
    [{ 'data.country': 'DE', 'data.paid': false }, false],
    [{ any: [{ 'data.paid': false }, { type: 'order.paid' }] }, true],
    [{ all: [{ 'data.paid': true }, { source: 'other' }] }, false],
    [{ not: { 'data.paid': true } }, false],
    [{ not: { any: [{ 'data.paid': false }] }, subject: 's', id: 'e1' }, true],
    [{ time: { gte: '2026-11-19', lt: '2026-11-20' } }, true],
    [{ tenant: { exists: false } }, true],
    [{ 'attributes.region': 'eu' }, true],
  ])('%o matches: %s', (where, expected) => {
    expect(matches(where, order, { attributes: '{"region":"eu"}' })).toBe(expected)
  })

  it('does not match content that is not JSON, unless it says so', () => {
    const filter = createContentFilter({ 'data.a': 1 }, 'where')
    const text = event(undefined, { body: Buffer.from('a=1') })
    expect(filter(text)).toBe(false)
    expect(createContentFilter({ data: { exists: false } }, 'where')(text)).toBe(true)
  })
})

const deep = (depth: number): object =>
  Array.from({ length: depth - 1 }).reduce<object>((inner) => ({ not: inner }), { type: 'a' })
const wide = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, n) => [`data.a${n}`, 1]))

it.each([
  ['where must be an object', 7],
  ['where must be an object', []],
  ['where must be a filter with at least one condition', {}],
  ['where.any must be a list of at least one filter; got an empty list', { any: [] }],
  ['where.any[1].not must be an object', { any: [{ type: 'a' }, { not: 5 }] }],
  ['where.all[0]["data.x"].gt must be a text or a finite number; got null', { all: [{ 'data.x': { gt: null } }] }],
  [
    'where["data.x"] must be comparisons by eq, ne, gt, gte, lt, lte, in, prefix, exists',
    { 'data.x': { regex: '(a+)+$' } },
  ],
  ['where["data.x"] must be comparisons by', { 'data.x': { constructor: 1 } }],
  ['where["data.x"] must be at least one of', { 'data.x': {} }],
  ['where["data.x"] must be a text, a finite number', { 'data.x': [1] }],
  ['where["data.x"] must be a text, a finite number', { 'data.x': Number.NaN }],
  ['where["data.x"] must be a text, a finite number', { 'data.x': '\ud800' }],
  ['where["data.x"].in must be a list of 1 to 100 values; got 0 values', { 'data.x': { in: [] } }],
  ['got 101 values', { 'data.x': { in: Array.from({ length: 101 }, () => 1) } }],
  ['where["data.x"].in[1] must be a text', { 'data.x': { in: [1, {}] } }],
  ['where["data.x"].exists must be true or false', { 'data.x': { exists: 1 } }],
  ['where["data.x"].prefix must be a text', { 'data.x': { prefix: 1 } }],
  ['where["amount"] must be a path such as type', { amount: 1 }],
  ['where["type.x"] must be a path', { 'type.x': 1 }],
  ['where["data."] must be a path', { 'data.': 1 }],
  ['where["data..x"] must be a path', { 'data..x': 1 }],
  ['where["data[x]"] must be a path', { 'data[x]': 1 }],
  ['of at most 256 characters', { [`data.${'a'.repeat(252)}`]: 1 }],
  ['must be a path', { [`data${'[0]'.repeat(33)}`]: 1 }],
  ['where must be nested at most 8 deep', deep(9)],
  ['where must be a filter with at most 100 conditions', wide(101)],
  ['where must be a filter with at most 100 conditions', { all: [wide(60), wide(60)] }],
  ['where must be at most 8,192 characters as JSON', { 'data.x': 'a'.repeat(8_200) }],
])('a faulty filter is rejected: %s', (message, where) => {
  expect(() => createContentFilter(where, 'where')).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  expect(() => createContentFilter(where, 'where')).toThrow(message)
})

it('the largest allowed filters are accepted', () => {
  expect(matches(deep(8), {})).toBe(true)
  expect(matches(wide(100), wide(0))).toBe(false)
  expect(() =>
    createContentFilter({ 'data.x': { in: Array.from({ length: 100 }, (_, n) => n) } }, 'where'),
  ).not.toThrow()
})

type Step = string | number
const name = fc.constantFrom('a', 'b', 'c.d', '__proto__', 'length', '"')
const scalar = fc.oneof(
  fc.constantFrom('', 'a', 'ab', 'b', null, true, false, 0, -0, 1, 2.5),
  fc.string(),
  fc.integer(),
)
const steps = fc.array(fc.oneof(name, fc.nat({ max: 2 })), { maxLength: 3 })
const { value: payload } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}))

/** A filter in a form that the naive evaluator reads, beside the same filter as a user writes it. */
type Plan =
  | { readonly kind: 'every' | 'some'; readonly of: readonly Plan[] }
  | { readonly kind: 'not'; readonly inner: Plan }
  | { readonly kind: 'test'; readonly steps: readonly Step[]; readonly by: string; readonly operand: unknown }

const testBy = (by: readonly string[], operand: fc.Arbitrary<unknown>): fc.Arbitrary<Plan> =>
  fc.record({ kind: fc.constant('test' as const), steps, by: fc.constantFrom(...by), operand })
const test = fc.oneof(
  testBy(['eq', 'ne'], scalar),
  testBy(
    ['gt', 'gte', 'lt', 'lte'],
    scalar.filter((one) => typeof one === 'string' || typeof one === 'number'),
  ),
  testBy(['in'], fc.array(scalar, { minLength: 1, maxLength: 4 })),
  testBy(['prefix'], fc.string({ maxLength: 2 })),
  testBy(['exists'], fc.boolean()),
)
const { plan } = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.oneof(
    { maxDepth: 4 },
    test,
    fc.record({
      kind: fc.constantFrom('every' as const, 'some' as const),
      of: fc.array(tie('plan'), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('not' as const), inner: tie('plan') }),
  ),
}))

function write(one: Plan): object {
  if (one.kind === 'not') return { not: write(one.inner) }
  if (one.kind !== 'test') return { [one.kind === 'every' ? 'all' : 'any']: one.of.map(write) }
  const path = one.steps.map((step) => (/^[a-z]+$/.test(String(step)) ? `.${step}` : `[${JSON.stringify(step)}]`))
  return { [`data${path.join('')}`]: one.by === 'eq' ? one.operand : { [one.by]: one.operand } }
}

function evaluate(one: Plan, data: unknown): boolean {
  if (one.kind === 'not') return !evaluate(one.inner, data)
  if (one.kind !== 'test') return one.of[one.kind]((each) => evaluate(each, data))
  let value = data as Record<Step, unknown> | undefined
  for (const step of one.steps) {
    const isMember = typeof step === 'number' ? Array.isArray(value) : isPlainObject(value)
    value = isMember && Object.hasOwn(value as object, step) ? (value?.[step] as typeof value) : undefined
  }
  const operand = one.operand as string | number
  const found = value as unknown as string | number
  const order = typeof found !== typeof operand ? Number.NaN : found < operand ? -1 : found > operand ? 1 : 0
  if (one.by === 'eq') return found === operand
  if (one.by === 'ne') return found !== operand
  if (one.by === 'gt') return order === 1
  if (one.by === 'gte') return order === 1 || order === 0
  if (one.by === 'lt') return order === -1
  if (one.by === 'lte') return order === -1 || order === 0
  if (one.by === 'in') return (one.operand as readonly unknown[]).some((each) => each === value)
  if (one.by === 'prefix')
    return typeof value === 'string' && String(value).slice(0, String(operand).length) === operand
  return (value !== undefined) === one.operand
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

it('a filter matches exactly what a naive evaluator says', () => {
  const seen = { true: 0, false: 0 }
  fc.assert(
    fc.property(plan, payload, (one, data) => {
      const read = event(data)
      const expected = evaluate(one, read.data)
      seen[`${expected}`]++
      expect(createContentFilter(write(one), 'where')(read)).toBe(expected)
    }),
    { numRuns: 10_000 },
  )
  expect(Math.min(seen.true, seen.false)).toBeGreaterThan(1_000)
})

it('10,000 fuzzed filters and payloads: a filter is rejected or returns a boolean, and its reads are bounded', () => {
  const garbled = fc.oneof(
    fc.anything({
      withBigInt: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
      maxDepth: 5,
    }),
    plan.map(write),
    fc.tuple(plan, fc.string(), fc.anything()).map(([one, key, value]) => ({ ...write(one), [key]: value })),
    fc.tuple(fc.string(), fc.anything()).map(([path, value]) => ({ [`data${path}`]: value })),
  )
  const seen = { compiled: 0, rejected: 0 }
  fc.assert(
    fc.property(garbled, payload, (where, data) => {
      const read = event(data)
      let reads = 0
      const counting = Object.create(read, { data: { get: () => (reads++, read.data) } }) as FlowEvent
      let filter
      try {
        filter = createContentFilter(where, 'where')
      } catch (error) {
        seen.rejected++
        expect(error).toBeInstanceOf(SluiceError)
        expect((error as SluiceError).message).toMatch(/^CONFIG_INVALID: where/)
        expect((error as SluiceError).message.length).toBeLessThan(1_000)
        return
      }
      seen.compiled++
      expect(typeof filter(counting)).toBe('boolean')
      expect(reads).toBeLessThanOrEqual(100)
    }),
    { numRuns: 10_000 },
  )
  expect(Math.min(seen.compiled, seen.rejected)).toBeGreaterThan(1_000)
})
