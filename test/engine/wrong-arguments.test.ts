// Calls without types: each missing or swapped argument is named in the error, and the store is not called.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Sluice, SluiceError } from '../../src/index.ts'
import { github } from '../../src/sources/index.ts'

const app = new Sluice({ store: 'sqlite::memory:', log: false, encryptionKey: Buffer.alloc(32, 7).toString('base64') })
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

const { endpoints } = app
const { deadLetters, lanes, flows, replays, keys, encryption, audit, events, runs, limits, sources } = app.admin
const FACES = { deadLetters, lanes, flows, replays, keys, encryption, audit, endpoints, events, runs, limits, sources }
/** The calls that only the engine makes. */
const OWN: ReadonlySet<string> = new Set([
  'endpoints.findTarget',
  'keys.onChange',
  'keys.constructor',
  'replays.sendAgain',
  'replays.sendHistory',
])

function membersOf(face: object): readonly string[] {
  const prototype: unknown = Object.getPrototypeOf(face)
  return Object.getOwnPropertyNames(prototype === Object.prototype ? face : prototype).filter(
    (name) => name !== 'constructor' && typeof Reflect.get(face, name) === 'function',
  )
}

const MEMBERS = Object.entries(FACES).flatMap(([called, face]) =>
  membersOf(face)
    .filter((name) => !OWN.has(`${called}.${name}`))
    .map((name) => [`${called}.${name}`, face, name] as const),
)

test('every object with members is tested', () => {
  expect(MEMBERS.length).toBeGreaterThan(55)
})

test.each(MEMBERS)('%s rejects wrong arguments, or returns', async (_called, face, name) => {
  const given = WRONG.flatMap((one) => [[one], ['work', one], ['work', 'a', one], [one, one]])
  const ends = await Promise.allSettled(given.map((arguments_) => call(face, name, ...arguments_)))
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
  const unclear = failures.filter((error) => !(error instanceof SluiceError) || error.code === 'STORE_FAILED')
  expect(unclear).toEqual([])
})

describe('the message names the argument and its kind', () => {
  test.each([
    [flows, 'pause', ['work'], 'admin.flows.pause: why must be an object with reason, by; got nothing.'],
    [flows, 'pause', ['work', { reason: 'late' }], 'admin.flows.pause: why.by must be text; got nothing.'],
    [lanes, 'runNow', ['work', 7], 'admin.lanes.runNow: key must be text; got 7.'],
    [lanes, 'list', [{}, '', -1], 'admin.lanes.list: n must be a whole number of at least 1; got -1.'],
    [
      runs,
      'list',
      [{ from: new Date(0) }],
      'admin.runs.list: filter.from must be a number of milliseconds since 1970; got an object.',
    ],
    [events, 'list', [{}, '', 'ten'], 'admin.events.list: n must be a whole number of at least 1; got text.'],
    [runs, 'show', [undefined], 'admin.runs.show: id must be text; got nothing.'],
    [limits, 'pause', ['api'], 'admin.limits.pause: how must be an object with for; got nothing.'],
    [endpoints, 'enable', ['ep_1'], 'endpoints.enable: how must be an object with from, by; got nothing.'],
    [deadLetters, 'retry', [['a']], 'admin.deadLetters.retry: which must be text or an object; got a list.'],
    [
      deadLetters,
      'drop',
      [{ kind: 'unruoted' }],
      'admin.deadLetters.list: filter.kind must be run or unrouted; got text.',
    ],
    [lanes, 'hold', ['work', 'a'], 'admin.lanes.hold: hold must be an object; got nothing.'],
    [lanes, 'hold', ['work', 'a', {}], 'admin.lanes.hold: hold.reason must be text; got nothing.'],
    [sources, 'refused', [7], 'admin.sources.refused: source must be text; got 7.'],
    [app, 'explain', ['work'], 'explain: key must be text; got nothing.'],
  ] as const)('%o', async (face, name, given, message) => {
    const error: unknown = await call(face, name, ...given).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
    expect((error as Error).message).toContain(message)
  })

  test('a member can be used as a standalone function', async () => {
    const own = new Sluice({ store: 'memory:', log: false })
    own.admin.lanes.runNow = () => Promise.resolve('already')
    expect(await own.admin.lanes.runNow('work', 'a')).toBe('already')
    await own.stop()
  })

  test('the message does not contain the value, because it may be a secret', async () => {
    const error = await call(keys, 'authenticate', { secret: 'whsec_hidden' }).catch((thrown: unknown) =>
      String(thrown),
    )
    expect(error).toContain('admin.keys.authenticate: secret must be text; got an object.')
    expect(error).not.toContain('hidden')
    expect(() => github('whsec_hidden' as never)).toThrow('the options must be an object; got text')
  })
})
