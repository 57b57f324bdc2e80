// Random requests made from the document, valid and corrupted, half of them on each store: none causes a server error, and each
// response matches the document. `npm run test:faults` sends more of them than `npm test`.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ERRORS } from '../../src/errors.ts'
import { faultOf, OPERATIONS, type Operated, type Schema } from './document.ts'
import type { Answer } from './rig.ts'
import { seeded, type Seeded } from './seeded.ts'

const REQUESTS = process.env['SIMULATION'] === 'long' ? 2_500 : 1_500
const AT_ONCE = 50

/** Names that exist in the app, so that some requests hit something: all of them, and those that suit each path. */
interface Pool {
  readonly all: readonly string[]
  readonly byTag: Readonly<Record<string, readonly string[]>>
}

interface Request {
  readonly operation: Operated
  readonly path: string
  readonly body: string | undefined
}

const NASTY = [
  '',
  '0',
  '-1',
  '1e999',
  'null',
  '__proto__',
  'constructor',
  '\0',
  '\ud800',
  '..',
  '%',
  "' or 1=1 --",
  '😀',
].concat(['9'.repeat(20), 'x'.repeat(20_000), '2026-02-31', '99999999999999d', 'unrouted-1', 'unrouted-x', '*', '[]'])

const nasty = fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: 'binary', maxLength: 30 }))
const anything = fc.oneof(nasty, fc.jsonValue({ maxDepth: 2 }))

type Names = readonly string[]

function textBy({ pattern, minLength = 0, maxLength = 40 }: Schema, names: Names): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.oneof(fc.stringMatching(new RegExp(pattern)), fc.constantFrom(...names))
  const made = fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, Math.max(minLength, 40)) })
  return fc.oneof(made, fc.constantFrom(...names), fc.constantFrom('2026-01-01', '1767225601000'))
}

/** A value that fits the schema, most of the time. */
function valueBy(schema: Schema, names: Names): fc.Arbitrary<unknown> {
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return fc.oneof(...options.map((one) => valueBy(one, names)))
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.type === 'string') return textBy(schema, names)
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'integer') {
    return fc.integer({ min: Math.max(schema.minimum ?? 0, -1_000), max: Math.min(schema.maximum ?? 0, 1_000_000) })
  }
  if (schema.type === 'number') return fc.double({ noNaN: true })
  if (schema.type === 'array') {
    const { items = {}, minItems = 0, maxItems = 3 } = schema
    return fc.array(valueBy(items, names), {
      minLength: minItems,
      maxLength: Math.max(minItems, Math.min(maxItems, 3)),
    })
  }
  if (schema.type !== 'object') return anything
  const { properties = {}, required = [] } = schema
  const others = Object.keys(properties).filter((name) => !required.includes(name))
  // At most two of them, because most of them together contradict each other.
  return fc.subarray(others, { maxLength: Math.min(2, others.length) }).chain((some) => {
    const made = [...required, ...some].map((name) => [name, valueBy(properties[name] ?? {}, names)] as const)
    return fc.record(Object.fromEntries(made))
  })
}

/** The value with something omitted, added or replaced. */
function spoilt(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return anything
  const names = Object.keys(value)
  const without = (name: string): object => Object.fromEntries(Object.entries(value).filter(([one]) => one !== name))
  const exchanged = fc.tuple(fc.constantFrom(...names, 'colour', '__proto__'), anything).map(([name, other]) => {
    return Object.fromEntries([...Object.entries(value), [name, other]])
  })
  return names.length === 0 ? exchanged : fc.oneof(exchanged, fc.constantFrom(...names).map(without), anything)
}

/** The weight of a fitting value against 1 for a nasty one. */
const MOSTLY = 9

function requestBy(operation: Operated, pool: Pool): fc.Arbitrary<Request> {
  const { parameters = [], requestBody, tags } = operation
  const fitting = tags.flatMap((tag) => pool.byTag[tag] ?? [])
  const given = parameters.map(({ name, in: where, required, schema }) => {
    const names = where === 'path' && fitting.length > 0 ? fitting : pool.all
    const value = fc.oneof({ weight: MOSTLY, arbitrary: textBy(schema, names) }, { weight: 1, arbitrary: nasty })
    const isThere = required ? 50 : 1
    return fc
      .oneof({ weight: isThere, arbitrary: value }, { weight: 3, arbitrary: fc.constant(undefined) })
      .map((text) => ({ name, where, text: where === 'path' ? (text ?? 'x') : text }))
  })
  const body = requestBody?.content['application/json']?.schema
  const valid =
    body === undefined ? fc.constant(undefined) : valueBy(body, pool.all).map((value) => JSON.stringify(value))
  const bad =
    body === undefined
      ? valid
      : valueBy(body, pool.all)
          .chain(spoilt)
          .map((value) => JSON.stringify(value) ?? '')
  const garbage = body === undefined ? valid : fc.oneof(nasty, fc.constant('['.repeat(5_000)))
  const bodies = fc.oneof(
    { weight: MOSTLY, arbitrary: valid },
    { weight: 2, arbitrary: bad },
    { weight: 1, arbitrary: garbage },
  )
  const more = fc.oneof(
    { weight: 20, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.tuple(nasty, nasty) },
  )
  return fc.tuple(fc.tuple(...given), bodies, more).map(([values, text, extra]) => {
    const query = new URLSearchParams()
    let { path } = operation
    for (const { name, where, text: value } of values) {
      if (value === undefined) continue
      if (where === 'query') query.append(name, value)
      else path = path.replace(`{${name}}`, encodeURIComponent(value.toWellFormed()).replaceAll('.', '%2E') || 'x')
    }
    if (extra !== undefined) query.append(...extra)
    return { operation, path: query.size === 0 ? path : `${path}?${query.toString()}`, body: text }
  })
}

const ids = ({ items }: { readonly items: readonly { readonly id: string }[] }): Names => items.map(({ id }) => id)

/** The names of everything that exists in the app now. */
async function poolOf(r: Seeded): Promise<Pool> {
  const { app } = r
  const [lanes, events, runs, deadLetters, unrouted] = await Promise.all([
    app.admin.lanes.list(),
    app.admin.events.list({ own: true }),
    app.admin.runs.list(),
    app.admin.deadLetters.list(),
    app.admin.deadLetters.list({ kind: 'unrouted' }),
  ])
  const flows = ['does', 'waits', 'fails', 'blocks', 'keyless', 'each', 'runs', 'sluice.replay']
  const byTag = {
    lanes: ids(lanes),
    events: ids(events),
    runs: ids(runs),
    'dead letters': [...ids(deadLetters), ...ids(unrouted)],
    flows,
    replays: ['again'],
    limits: ['calls', 'calls/ada', 'calls/bob', 'sluice.replay/again'],
    sources: ['shop', 'pages', '-'],
    keys: ['spare', 'reader'],
    subscribers: (await app.endpoints.list()).map(({ id }) => id),
  }
  const words = ['ada', 'bob', 'acme', 'ping', 'late', 'bad-1', 'app', '1m', '10s', '250ms', 'https://example.com/']
  return { all: [...Object.values(byTag).flatMap((names) => names.slice(0, 5)), ...flows, ...words], byTag }
}

interface Fault {
  readonly request: string
  readonly answer: Answer
  readonly why: string
}

async function sent(r: Seeded, { operation, path, body }: Request, n: number): Promise<Answer | Fault> {
  // Each request comes from another address, so that no rate limit applies.
  const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
  const options = { key: r.operate, address, ...(body !== undefined && { body }) }
  const answer = await r.call(operation.method, path, options)
  const why = faultOf(operation, answer) ?? unexpected(answer)
  return why === undefined ? answer : { request: `${operation.method} ${path} ${body ?? ''}`, answer, why }
}

function unexpected({ status, body }: Answer): string | undefined {
  if (status === 200 || status === 202) return undefined
  const { code } = body as { readonly code: keyof typeof ERRORS }
  if (status >= 500) return `it is the server's fault: ${code}`
  return ERRORS[code]?.status === status ? undefined : `${status} is not that of ${code}`
}

describe.each(['memory:', 'sqlite::memory:'])('on %s', (store) => {
  test(`${REQUESTS} random requests cause no server error`, async () => {
    const seen = new Map<number, number>()
    const reached = new Set<string>()
    let n = 0
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const r = await seeded(store)
        const pool = await poolOf(r)
        for (let left = AT_ONCE; left > 0; left--) {
          const operation = draw(fc.constantFrom, ...OPERATIONS)
          const result = await sent(r, draw(requestBy, operation, pool), n++)
          if ('why' in result)
            throw new Error(`${result.why}\n${result.request}\n${JSON.stringify(result.answer.body)}`)
          seen.set(result.status, (seen.get(result.status) ?? 0) + 1)
          if (result.status < 300) reached.add(operation.operationId)
        }
      }),
      { seed: 5, numRuns: REQUESTS / AT_ONCE, endOnFailure: true },
    )
    expect([...seen.values()].reduce((sum, count) => sum + count, 0)).toBe(REQUESTS)
    // Both outcomes must be frequent: the random requests neither all fail nor all succeed.
    expect(seen.get(200)).toBeGreaterThan(REQUESTS / 5)
    expect(seen.get(400)).toBeGreaterThan(REQUESTS / 5)
    expect(seen.get(404)).toBeGreaterThan(REQUESTS / 100)
    expect(reached.size).toBeGreaterThan(OPERATIONS.length * 0.9)
  })
})
