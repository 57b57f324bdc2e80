// Typed events: the schema checks what is published and what a source receives, and its output is what user code reads.
import { describe, expect, test } from 'vitest'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type as ark } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import {
  defineEvent,
  openStore,
  Sluice,
  SluiceError,
  type EventDefinition,
  type EventInput,
  type TypedEvent,
} from '../../src/index.ts'
import { unverified } from '../../src/sources/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { emittedEvents, keysOf, play, sendNow, Shared, soon, STORES, type Declare } from './scene.ts'

const edited = defineEvent('task.edited', z.object({ user: z.string(), n: z.coerce.number().default(1) }))
const closed = defineEvent('task.closed', z.object({ user: z.string(), by: z.enum(['owner', 'guest']) }))

interface Edit {
  readonly user: string
  readonly n: number
}

/** The same event by each library: its "n" is a text that becomes a number. */
const LIBRARIES: readonly (readonly [string, EventDefinition<Edit, { user: string; n: string }>])[] = [
  ['zod', defineEvent('task.edited', z.object({ user: z.string(), n: z.string().transform(Number) }))],
  ['valibot', defineEvent('task.edited', v.object({ user: v.string(), n: v.pipe(v.string(), v.transform(Number)) }))],
  ['arktype', defineEvent('task.edited', ark({ user: 'string', n: 'string.numeric.parse' }))],
]

/** A schema whose version changes between two starts. */
class Versions {
  #isStrict = true
  readonly #strict = z.object({ user: z.string() })
  readonly #lax = z.object({ user: z.coerce.string() })

  accept(): void {
    this.#isStrict = false
  }

  reject(): void {
    this.#isStrict = true
  }

  readonly event = defineEvent(
    'task.edited',
    z.unknown().transform((value, context) => {
      const parsed = (this.#isStrict ? this.#strict : this.#lax).safeParse(value)
      if (parsed.success) return parsed.data
      context.issues.push({ code: 'custom', path: ['user'], message: 'not a text', input: value })
      return z.NEVER
    }),
  )
}

function declareFor(event: TypedEvent<{ user: string }>, seen: unknown[] = []): Declare {
  return (app) =>
    app.source('in', unverified({ verify: 'none', type: () => 'task.edited' })).flow('f', {
      on: event,
      key: ({ data }) => data.user,
      run: ({ events }) => void seen.push(...events.map((one) => one.data)),
    })
}

/** Lets the source of the app receive this body. */
async function receive(t: TestApp, body: unknown): Promise<number> {
  const { status } = await t.app.fetch(
    new Request('http://localhost/in/in', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    }),
  )
  await soon(t)
  return status
}

async function stored(t: TestApp): Promise<number> {
  return (await t.app.admin.events.list({})).items.length
}

async function unroutedOf(t: TestApp): Promise<readonly unknown[]> {
  return (await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items
}

const WRONG: EventInput = { type: 'task.edited', data: { user: 7 } }

describe.each(STORES)('typed events on %s', (store) => {
  test.each(LIBRARIES)('%s: key and run get the output of the schema', async (_name, event) => {
    const seen: unknown[] = []
    const t = await play(store, declareFor(event, seen))
    await sendNow(t, event({ user: 'ada', n: '7' }))
    expect(keysOf(t)).toEqual(['ada'])
    expect(seen).toEqual([{ user: 'ada', n: 7 }])
  })

  test.each(LIBRARIES)(
    '%s: publish rejects invalid data with path and message, and stores nothing',
    async (_n, event) => {
      const t = await play(store, () => {})
      const input = { user: 7, n: '7' } as never
      const failed = await t.app
        .publish([event({ user: 'ada', n: '7' }), event(input)])
        .catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(SluiceError)
      expect(failed).toMatchObject({
        code: 'EVENT_INVALID',
        message: expect.stringMatching(/task\.edited: data\.user: .*nothing was stored/i),
      })
      expect(await stored(t)).toBe(0)
    },
  )

  test('publish rejects a plain event of a type that a flow defines', async () => {
    const t = await play(store, declareFor(edited))
    await expect(t.app.publish(WRONG)).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringContaining('data.user: '),
    })
    await expect(t.app.publish({ type: 'task.edited', body: 'text' })).rejects.toThrow('task.edited: data: ')
    await expect(t.app.publish(WRONG, { at: Date.UTC(2026, 1, 1) })).rejects.toThrow('data.user: ')
    await expect(t.app.publish(WRONG, { to: 'f' })).rejects.toThrow('data.user: ')
    expect(await stored(t)).toBe(0)
    await sendNow(t, { type: 'task.edited', data: { user: 'ada' } })
    expect(keysOf(t)).toEqual(['ada'])
  })

  test('publish checks what would be stored: JSON has no dates', async () => {
    const timed = defineEvent('timed', z.object({ at: z.date() }))
    const t = await play(store, () => {})
    await expect(t.app.publish(timed({ at: new Date(0) }))).rejects.toThrow(
      /data\.at: .*expected date, received string/i,
    )
  })

  test('publish rejects with every definition of the type', async () => {
    const strict = defineEvent('task.edited', z.object({ user: z.string().min(3) }))
    const t = await play(store, (app) => {
      declareFor(edited)(app)
      app.flow('strict', { on: strict, run: () => {} })
    })
    await expect(t.app.publish(edited({ user: 'al' }))).rejects.toThrow('data.user: ')
    expect(await stored(t)).toBe(0)
  })

  test('run.publish throws where it is called, and the attempt publishes nothing', async () => {
    const t = await play(store, (app) => {
      declareFor(edited)(app)
      app.flow('again', {
        on: 'start',
        retry: [],
        run: ({ publish }) => publish([closed({ user: 'u', by: 'owner' }), WRONG]),
      })
    })
    await sendNow(t, { type: 'start' })
    expect(t.runs).toMatchObject([
      { ending: 'dead', error: expect.stringContaining('EVENT_INVALID: task.edited: data.user: ') },
    ])
    expect(await stored(t)).toBe(1)
  })

  test('the options of an event are published with it', async () => {
    const t = await play(store, declareFor(edited))
    const options = { subject: 's', tenant: 't', id: 'e1', dedupeId: 'd1', time: 5, attributes: { a: 'b' } }
    await sendNow(t, edited({ user: 'ada' }, options))
    expect(await sendNow(t, edited({ user: 'ada' }, { ...options, id: 'e2' }))).toMatchObject([
      { kind: 'duplicate', of: 'e1' },
    ])
    const { items } = await t.app.admin.events.list({})
    expect(items).toMatchObject([{ id: 'e1', source: 'app', type: 'task.edited', subject: 's', tenant: 't', time: 5 }])
  })

  test('on matches the type exactly, from every source; with a source only from that one', async () => {
    const ofBoard = defineEvent('board/task.edited', z.object({ user: z.string() }))
    const t = await play(store, (app) => {
      declareFor(edited)(app)
      app.flow('board', { on: ofBoard, run: () => {} })
    })
    for (const type of ['task', 'task.edited.x', 'x.task.edited', 'x/task.edited'])
      await sendNow(t, { type, data: { user: 'u' } })
    expect(t.runs).toEqual([])
    await sendNow(t, [edited({ user: 'a' }), edited({ user: 'b' }, { source: 'shop' }), ofBoard({ user: 'c' })])
    expect(t.runs.map(({ flow, events }) => `${flow} ${(events[0] as Edit).user}`).toSorted()).toEqual([
      'board c',
      'f a',
      'f b',
      'f c',
    ])
  })

  test('a definition with a source checks only the events of that source', async () => {
    const ofBoard = defineEvent('board/task.edited', z.object({ user: z.string() }))
    const t = await play(store, (app) => app.flow('board', { on: ofBoard, run: () => {} }))
    expect(await t.app.publish(WRONG)).toMatchObject([{ kind: 'stored' }])
    await expect(t.app.publish({ ...WRONG, source: 'board' })).rejects.toThrow('board/task.edited: data.user: ')
  })

  test('a list takes the events of each definition with its own schema', async () => {
    const seen: unknown[] = []
    const t = await play(store, (app) =>
      app.flow('f', {
        on: [edited, closed],
        key: ({ data }) => data.user,
        run: ({ events }) =>
          void seen.push(...events.map((one) => (one.type === 'task.closed' ? one.data.by : one.data.n))),
      }),
    )
    await sendNow(t, [edited({ user: 'a' }), closed({ user: 'b', by: 'guest' }), edited({ user: 'c', n: 3 })])
    expect(seen).toEqual([1, 'guest', 3])
  })

  test('event.text is the original', async () => {
    const texts: string[] = []
    const t = await play(store, (app) =>
      app.flow('f', { on: edited, run: ({ events }) => void texts.push(events[0]!.text) }),
    )
    await sendNow(t, { type: 'task.edited', body: '{ "user":"ada", "more":1 }' })
    expect(texts).toEqual(['{ "user":"ada", "more":1 }'])
  })
})

describe.each(STORES)('L2a an event of a source that its schema rejects, on %s', (store) => {
  test('is stored as unrouted, with path and message, and its sender gets the 2xx', async () => {
    const t = await play(store, (app) => declareFor(edited)(app.flow('good', { on: 'task.*', run: () => {} })))
    expect(await receive(t, { user: 7 })).toBe(202)
    expect(t.runs).toMatchObject([{ flow: 'good', ending: 'done' }])
    const error = expect.stringMatching(/task\.edited: data\.user: .*expected string, received number/i)
    expect(await unroutedOf(t)).toMatchObject([{ kind: 'unrouted', flow: 'f', reason: 'schema-failed', error }])
    expect(emittedEvents(t, 'event.unrouted')).toMatchObject([{ flow: 'f', reason: 'schema-failed', error }])
    const { items } = await t.app.admin.events.list({})
    const shown = await t.app.admin.events.show(items[0]!.id)
    expect(shown).toMatchObject({
      note: 'not routed to f yet: schema-failed',
      unrouted: [{ flow: 'f', reason: 'schema-failed', error }],
    })
  })

  test('is retried after each start', async () => {
    const versions = new Versions()
    const seen: unknown[] = []
    const t = await play(store, declareFor(versions.event, seen))
    await receive(t, { user: 7 })
    await t.advance('10m')
    expect(t.runs).toEqual([])
    versions.accept()
    await t.advance('10m')
    expect(t.runs).toEqual([])
    await t.crash()
    await t.restart()
    await soon(t)
    expect(seen).toEqual([{ user: '7' }])
    expect(await unroutedOf(t)).toEqual([])
  })

  test('is retried by hand, and stays if its schema still rejects it', async () => {
    const versions = new Versions()
    const t = await play(store, declareFor(versions.event))
    await receive(t, { user: 7 })
    await t.app.admin.deadLetters.retry({ kind: 'unrouted' })
    await t.advance('2m')
    expect(await unroutedOf(t)).toMatchObject([{ reason: 'schema-failed' }])
    versions.accept()
    await t.app.admin.deadLetters.retry({ kind: 'unrouted' })
    await t.advance('2m')
    expect(keysOf(t)).toEqual(['7'])
    expect(await unroutedOf(t)).toEqual([])
  })

  test('is not routed without a key function either', async () => {
    const t = await play(store, (app) => {
      app.source('in', unverified({ verify: 'none', type: () => 'task.edited' }))
      app.flow('f', { on: edited, run: () => {} })
    })
    await receive(t, { user: 7 })
    expect(t.runs).toEqual([])
    expect(await unroutedOf(t)).toMatchObject([{ reason: 'schema-failed' }])
  })
})

describe.each(STORES)('a stored event that a newer schema rejects, on %s', (store) => {
  test('fails the attempt that reads its data, with path and message', async () => {
    const versions = new Versions()
    versions.accept()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: versions.event,
        key: ({ data }) => data.user,
        batch: '1s',
        retry: ['5s'],
        run: ({ events: [first] }) => void first?.data.user,
      }),
    )
    await t.send({ type: 'task.edited', data: { user: 7 } })
    versions.reject()
    await t.advance('1s')
    expect(t.runs).toMatchObject([
      { ending: 'retry', error: expect.stringContaining('task.edited: data.user: not a text') },
    ])
    versions.accept()
    await t.advance('5s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'done', events: [{ user: '7' }] }])
  })

  test('runs if its handler does not read its data', async () => {
    const versions = new Versions()
    versions.accept()
    const texts: string[] = []
    const t = await play(store, (app) =>
      app.flow('f', {
        on: versions.event,
        window: { every: '1s' },
        run: ({ events: [first] }) => void texts.push(first!.text, JSON.stringify(first)),
      }),
    )
    await t.send({ type: 'task.edited', data: { user: 7 }, id: 'e' })
    versions.reject()
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ ending: 'done', events: [{ user: 7 }] }])
    expect(texts).toEqual(['{"user":7}', expect.stringContaining('"data":{"user":7}')])
  })

  test('becomes unrouted if it waited for its time', async () => {
    const versions = new Versions()
    versions.accept()
    const t = await play(store, declareFor(versions.event))
    await t.send({ type: 'task.edited', data: { user: 7 } }, { at: t.clock.now() + 60_000 })
    versions.reject()
    await t.advance('2m')
    expect(emittedEvents(t, 'run.dead')).toEqual([])
    expect(await unroutedOf(t)).toMatchObject([{ flow: 'f', reason: 'schema-failed' }])
  })
})

function schemaOf(validate: StandardSchemaV1.Props['validate']): StandardSchemaV1<{ user: string }> {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as never } }
}

const LATE = schemaOf(() => Promise.reject(new Error('looked up')))
const BROKEN = schemaOf(() => {
  throw new RangeError('no user')
})

const FAULTY: readonly (readonly [string, TypedEvent<{ user: string }>, string, string])[] = [
  [
    'that returns a promise',
    defineEvent('task.edited', z.object({ user: z.string().refine(() => Promise.resolve(true)) })),
    'CONFIG_INVALID',
    'schema must be synchronous; it returned a promise',
  ],
  ['whose promise rejects', defineEvent('task.edited', LATE), 'CONFIG_INVALID', 'schema must be synchronous'],
  ['that throws', defineEvent('task.edited', BROKEN), 'EVENT_INVALID', 'its schema threw: no user'],
]

describe.each(STORES)('L2a a schema on %s', (store) => {
  test.each(FAULTY)(
    '%s: publish rejects, and an event of a source becomes unrouted',
    async (_name, event, code, text) => {
      const t = await play(store, declareFor(event))
      const message = expect.stringContaining(text)
      await expect(t.app.publish({ type: 'task.edited', data: { user: 'ada' } })).rejects.toMatchObject({
        code,
        message,
      })
      expect(await stored(t)).toBe(0)
      expect(await receive(t, { user: 'ada' })).toBe(202)
      expect(await unroutedOf(t)).toMatchObject([{ reason: 'schema-failed', error: message }])
    },
  )

  test('names the path of each issue, and bounds how many it names', async () => {
    const order = defineEvent('order', z.object({ items: z.array(z.object({ 'unit price': z.number() })) }))
    const t = await play(store, () => {})
    const items = Array.from({ length: 8 }, () => ({ 'unit price': 'x' as never }))
    await expect(t.app.publish(order({ items }))).rejects.toThrow(
      /order: data\.items\[0\]\["unit price"\]: .*; data\.items\[4\].*; and 3 more; nothing was stored/,
    )
  })
})

describe('typed events of two processes', () => {
  test.each(STORES)('a process routes an event to the typed flow of another one, on %s', async (address) => {
    const shared = await Shared.open(address)
    const ran: unknown[] = []
    await shared.process('one', (app) =>
      app.flow('f', { on: edited, run: ({ events }) => void ran.push(events[0]!.data) }),
    )
    const other = await shared.process('two', (app) => app.flow('g', { on: 'other', run: () => {} }))
    await other.publish([
      { type: 'task.edited', data: { user: 'ada' } },
      { type: 'task.edited.x', data: { user: 'bob' } },
    ])
    await shared.advance(2_000)
    expect(ran).toEqual([{ user: 'ada', n: 1 }])
  })
})

describe('defineEvent', () => {
  test('has source and type as properties', () => {
    expect([edited.source, edited.type]).toEqual([undefined, 'task.edited'])
    const paid = defineEvent('shop/order/paid', z.unknown())
    expect([paid.source, paid.type]).toEqual(['shop', 'order/paid'])
    expect(defineEvent<Edit>('shop/order')({ user: 'u', n: 1 })).toMatchObject({
      type: 'order',
      source: 'shop',
      data: { n: 1 },
    })
  })

  test('without a schema does not check the data', async () => {
    const noted = defineEvent<Edit>('note')
    const t = await play('memory:', (app) => app.flow('f', { on: noted, run: () => {} }))
    await sendNow(t, { type: 'note', data: 'anything' })
    expect(t.runs).toMatchObject([{ ending: 'done', events: ['anything'] }])
  })

  test.each(['', 'task.*', '/created', 'stripe/', 7 as unknown as string])('rejects the name %j', (name) => {
    expect(() => defineEvent(name, z.unknown())).toThrow('the name must be a type or source/type without *')
  })

  test.each([{}, { user: 'string' }, null, 'string', { '~standard': {} }])('rejects the schema %j', (schema) => {
    expect(() => defineEvent('note', schema as never)).toThrow('schema must be a Standard Schema')
  })

  test('rejects the event of another source', () => {
    const ofBoard = defineEvent('board/task.edited', z.unknown())
    expect(() => ofBoard({}, { source: 'shop' })).toThrow(
      'source must be "board", which the definition names; got "shop".',
    )
    expect(ofBoard({}, { source: 'board' })).toMatchObject({ source: 'board' })
  })
})

describe('on', () => {
  test.each([
    ['globs beside typed events', [edited, 'task.*'], 'only typed events or only globs'],
    ['one event twice', [edited, edited], 'must name each event once; got task.edited twice'],
    ['an empty list', [], 'must not be empty'],
    ['an object', {}, 'must be a typed event, a glob, a list of either, or a function'],
  ])('rejects %s', async (_name, on, text) => {
    const store = await openStore('memory:')
    const app = new Sluice({ store, log: false })
    expect(() => app.flow('f', { on: on as never, run: () => {} })).toThrow(text)
    await store.close()
  })
})
