// Whoever calls without types: each argument that is missing or mixed up is named, and no store is asked what it thinks of it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Sluice, SluiceError } from '../../src/index.ts'
import { github } from '../../src/sources/index.ts'

const app = new Sluice({ store: 'sqlite::memory:', log: false, key: Buffer.alloc(32, 7).toString('base64') })
app.flow('work', { on: 'thing', key: (event) => event.subject, run: () => {} })
app.delivery('out', { on: 'thing' })
app.limit('api', { rate: 3, per: '1s' })

beforeAll(() => app.start())
afterAll(() => app.stop())

type Member = (...given: unknown[]) => unknown

async function call(face: object, name: string, ...given: unknown[]): Promise<void> {
  const answer = await (Reflect.get(face, name) as Member).apply(face, given)
  // An export begins when it is read.
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer) {
    await (answer as AsyncGenerator).next()
  }
}

const WRONG: readonly unknown[] = [
  undefined,
  null,
  5,
  Number.NaN,
  '',
  '\ud800',
  {},
  [],
  { flow: 5 },
  { flow: 'work', key: 7 },
  { tenant: {} },
  { reason: 5, by: {} },
  () => {},
  true,
  10n,
  Symbol('s'),
]

const { deadLetters, lanes, flows, replays, keys, masterKey, audit, endpoints, stored, runs, limits, sources } = app
const FACES = { deadLetters, lanes, flows, replays, keys, masterKey, audit, endpoints, stored, runs, limits, sources }
/** How the engine itself asks, for each delivery. */
const OWN: ReadonlySet<string> = new Set(['endpoints.addressed', 'keys.listen', 'keys.constructor'])

function membersOf(face: object): readonly string[] {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(face)).filter(
    (name) => name !== 'constructor' && typeof Reflect.get(face, name) === 'function',
  )
}

const MEMBERS = Object.entries(FACES).flatMap(([called, face]) =>
  membersOf(face)
    .filter((name) => !OWN.has(`${called}.${name}`))
    .map((name) => [`${called}.${name}`, face, name] as const),
)

test('all faces are here', () => {
  expect(MEMBERS.length).toBeGreaterThan(55)
})

test.each(MEMBERS)('%s says what is wrong, or answers', async (_called, face, name) => {
  const given = WRONG.flatMap((one) => [[one], ['work', one], ['work', 'a', one], [one, one]])
  const ends = await Promise.allSettled(given.map((arguments_) => call(face, name, ...arguments_)))
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
  const unclear = failures.filter((error) => !(error instanceof SluiceError) || error.code === 'STORE_FAILED')
  expect(unclear).toEqual([])
})

describe('the message names the argument, and what it is', () => {
  test.each([
    [flows, 'pause', ['work'], 'flows.pause: why is missing; it is an object with reason, by.'],
    [flows, 'pause', ['work', { reason: 'late' }], 'flows.pause: why.by is missing; it is text.'],
    [lanes, 'runNow', ['work', 7], 'lanes.runNow: key is 7; it is text.'],
    [lanes, 'list', [{}, '', -1], 'lanes.list: n is -1; it is a whole number above 0.'],
    [runs, 'list', [{ from: new Date(0) }], 'runs.list: filter.from is of type object; it is milliseconds since 1970.'],
    [stored, 'list', [{}, '', 'ten'], 'stored.list: n is text; it is a whole number above 0.'],
    [runs, 'show', [undefined], 'runs.show: id is missing; it is text.'],
    [limits, 'pause', ['api'], 'limits.pause: how is missing; it is an object with for.'],
    [endpoints, 'enable', ['ep_1'], 'endpoints.enable: how is missing; it is an object with from, by.'],
    [deadLetters, 'retry', [['a']], 'deadLetters.retry: which is a list; it is text or an object.'],
    [deadLetters, 'drop', [{ kind: 'unruoted' }], 'deadLetters.list: filter.kind is text; it is run or unrouted.'],
    [lanes, 'hold', ['work', 'a'], 'lanes.hold: hold is missing; it is an object.'],
    [lanes, 'hold', ['work', 'a', {}], 'lanes.hold: hold.reason is missing; it is text.'],
    [app, 'refused', [7], 'sources.refused: source is 7; it is text.'],
    [app, 'explain', ['work'], 'explain: key is missing; it is text.'],
  ] as const)('%o', async (face, name, given, message) => {
    const error: unknown = await call(face, name, ...given).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
    expect((error as Error).message).toContain(message)
  })

  test('a member can be put in the place of another, as a method can', async () => {
    const own = new Sluice({ store: 'memory:', log: false })
    own.lanes.runNow = () => Promise.resolve('already')
    expect(await own.lanes.runNow('work', 'a')).toBe('already')
    await own.stop()
  })

  test('nothing of what was given is said: it may be a secret in the wrong place', async () => {
    const error = await call(keys, 'find', { secret: 'whsec_hidden' }).catch((thrown: unknown) => String(thrown))
    expect(error).toContain('keys.find: secret is of type object; it is text.')
    expect(error).not.toContain('hidden')
    expect(() => github('whsec_hidden' as never)).toThrow('the options are text; they are an object')
  })
})
