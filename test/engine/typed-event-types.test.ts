// The types of typed events: what compiles, and what must not. `tsc` checks this file, so an unused `@ts-expect-error` fails the build.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type as ark } from 'arktype'
import type Stripe from 'stripe'
import * as v from 'valibot'
import { z } from 'zod'
import { defineEvent, Sluice, type EventInput, type FlowEvent } from '../../src/index.ts'

const edited = defineEvent('task.edited', z.object({ user: z.string(), n: z.number().optional() }))
const closed = defineEvent('task.closed', v.object({ user: v.string(), by: v.picklist(['owner', 'guest']) }))
const moved = defineEvent('board/task.moved', ark({ user: 'string', column: 'string.numeric.parse' }))
const timed = defineEvent('task.timed', z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }))
const counted = defineEvent('task.counted', v.pipe(v.string(), v.transform(Number)))
const paid = defineEvent<Stripe.CheckoutSessionCompletedEvent>('stripe/checkout.session.completed')
const noted = defineEvent<{ readonly text: string }>('note')

function create(): Sluice {
  return new Sluice({ store: 'memory:', log: false })
}

function run(): void {}

function userOf(event: FlowEvent): string {
  return event.id
}

describe('typed events on: one definition', () => {
  test('1 key gets the output of a zod schema', () => {
    create().flow('f', {
      on: edited,
      key: (event) => {
        expectTypeOf(event.data).toEqualTypeOf<{ user: string; n?: number | undefined }>()
        return event.data.user
      },
      run,
    })
  })

  test('2 key gets the output of a valibot schema', () => {
    create().flow('f', {
      on: closed,
      key: (event) => {
        expectTypeOf(event.data.by).toEqualTypeOf<'owner' | 'guest'>()
        return event.data.user
      },
      run,
    })
  })

  test('3 key gets the output of an arktype schema', () => {
    create().flow('f', {
      on: moved,
      key: (event) => {
        expectTypeOf(event.data.column).toEqualTypeOf<number>()
        return event.data.user
      },
      run,
    })
  })

  test('4 window gets the data', () => {
    create().flow('f', {
      on: edited,
      key: (event) => event.data.user,
      window: (event) => ({ quiet: (event.data.n ?? 0) > 5 ? '1s' : '10s' }),
      run,
    })
  })

  test('5 whileRunning gets the data', () => {
    create().flow('f', {
      on: closed,
      key: (event) => event.data.user,
      whileRunning: (event) => (event.data.by === 'owner' ? 'cancel' : 'window'),
      run,
    })
  })

  test('6 pace gets the data of the events of its run', () => {
    const app = create()
    const perUser = app.limit('per-user', { rate: 1, per: '1s' })
    app.flow('f', { on: edited, pace: ({ events: [first] }) => first && perUser.per(first.data.user), run })
  })

  test('7 run gets the data of each event', () => {
    create().flow('f', {
      on: edited,
      run: ({ events }) => {
        expectTypeOf(events.map((event) => event.data.user)).toEqualTypeOf<string[]>()
      },
    })
  })

  test('8 an async run gets the data', () => {
    create().flow('f', { on: closed, run: async ({ events }) => void events[0]?.data.by.toUpperCase() })
  })

  test('9 event.data is what the schema returns, not what it takes', () => {
    create().flow('f', {
      on: timed,
      run: ({ events: [first] }) => {
        expectTypeOf(first!.data.at).toEqualTypeOf<Date>()
      },
    })
  })

  test('10 event.type is the literal type', () => {
    create().flow('f', {
      on: edited,
      key: (event) => {
        expectTypeOf(event.type).toEqualTypeOf<'task.edited'>()
        return event.data.user
      },
      run,
    })
  })

  test('11 event.type is the type without the source', () => {
    create().flow('f', {
      on: moved,
      key: (event) => {
        expectTypeOf(event.type).toEqualTypeOf<'task.moved'>()
        return event.data.user
      },
      run,
    })
  })

  test('12 a function of any event is a key as well', () => {
    create().flow('f', { on: edited, key: userOf, run })
  })

  test('13 a field that the schema lacks does not compile in key', () => {
    // @ts-expect-error: the data has no field "owner".
    create().flow('f', { on: edited, key: (event) => event.data.owner, run })
  })

  test('14 a field of another type is no key', () => {
    // @ts-expect-error: a key is a text, and "n" is a number.
    create().flow('f', { on: edited, key: (event) => event.data.n, run })
  })

  test('15 a field that the schema lacks does not compile in run', () => {
    // @ts-expect-error: the data has no field "column".
    create().flow('f', { on: edited, run: ({ events: [first] }) => void first?.data.column })
  })

  test('16 an optional field may be undefined', () => {
    // @ts-expect-error: "n" may be undefined.
    create().flow('f', { on: edited, run: ({ events: [first] }) => void first?.data.n.toFixed() })
  })

  test('17 a value outside of a picklist does not compile', () => {
    create().flow('f', {
      on: closed,
      key: (event) => event.data.user,
      // @ts-expect-error: "by" is never "admin".
      whileRunning: (event) => (event.data.by === 'admin' ? 'cancel' : 'window'),
      run,
    })
  })
})

describe('typed events on: a list', () => {
  test('18 the data is a union', () => {
    create().flow('f', {
      on: [edited, closed],
      key: (event) => {
        expectTypeOf(event.data).toEqualTypeOf<
          { user: string; n?: number | undefined } | { user: string; by: 'owner' | 'guest' }
        >()
        return event.data.user
      },
      run,
    })
  })

  test('19 the type narrows the data', () => {
    create().flow('f', {
      on: [edited, closed, moved],
      run: ({ events }) => {
        for (const event of events) {
          if (event.type === 'task.moved') expectTypeOf(event.data.column).toEqualTypeOf<number>()
          else if (event.type === 'task.closed') expectTypeOf(event.data.by).toEqualTypeOf<'owner' | 'guest'>()
          else expectTypeOf(event.data.n).toEqualTypeOf<number | undefined>()
        }
      },
    })
  })

  test('20 a field of only one of them needs narrowing', () => {
    // @ts-expect-error: only task.closed has "by".
    create().flow('f', { on: [edited, closed], run: ({ events: [first] }) => void first?.data.by })
  })

  test('21 a type that is not in the list does not compile', () => {
    create().flow('f', {
      on: [edited, closed],
      // @ts-expect-error: no event of the list is a task.moved.
      key: (event) => (event.type === 'task.moved' ? 'moved' : event.data.user),
      run,
    })
  })

  test('22 typed events and globs do not mix', () => {
    // @ts-expect-error: the data of a glob is unknown.
    expect(() => create().flow('f', { on: [edited, 'task.*'], run })).toThrow('only typed events or only globs')
  })
})

describe('typed events on: globs and predicates', () => {
  test('23 the data of a glob is unknown', () => {
    create().flow('f', {
      on: ['task.*', 'note'],
      key: (event) => {
        expectTypeOf(event.data).toEqualTypeOf<unknown>()
        expectTypeOf(event.type).toEqualTypeOf<string>()
        return event.subject
      },
      run,
    })
  })

  test('24 the data of a predicate is unknown', () => {
    create().flow('f', {
      on: (event) => event.type.startsWith('task.'),
      run: ({ events }) => {
        expectTypeOf(events).toEqualTypeOf<readonly FlowEvent[]>()
      },
    })
  })

  test('25 a field of unknown data does not compile', () => {
    // @ts-expect-error: the data of a glob is unknown.
    create().flow('f', { on: 'task.*', key: (event) => event.data.user, run })
  })
})

describe('typed events: publish', () => {
  test('26 a definition returns an event', () => {
    expectTypeOf(edited({ user: 'ada' })).toEqualTypeOf<EventInput>()
    expectTypeOf(closed({ user: 'ada', by: 'owner' }, { subject: 'a', tenant: 't', id: '1', dedupeId: 'd' })).toExtend<
      Parameters<Sluice['publish']>[0]
    >()
  })

  test('27 data of a wrong type does not compile, with each library', () => {
    // @ts-expect-error: "user" is a text.
    edited({ user: 1 })
    // @ts-expect-error: "by" is owner or guest.
    closed({ user: 'ada', by: 'admin' })
    // @ts-expect-error: "column" is missing.
    moved({ user: 'ada' })
  })

  test('28 a definition takes what the schema takes, not what it returns', () => {
    timed({ at: '2026-01-01T00:00:00Z' })
    moved({ user: 'ada', column: '7' })
    counted('12')
    // @ts-expect-error: the schema takes a text.
    timed({ at: new Date(0) })
    // @ts-expect-error: the schema takes a text.
    counted(12)
  })

  test('29 the type and the data are not options', () => {
    // @ts-expect-error: the definition sets the type.
    edited({ user: 'ada' }, { type: 'task.closed' })
    // @ts-expect-error: the data is the first argument.
    edited({ user: 'ada' }, { data: {} })
  })

  test('30 run.publish takes typed events', () => {
    create().flow('f', {
      on: edited,
      run: ({ events, publish }) => {
        publish(events.map(({ data }) => closed({ user: data.user, by: 'owner' })))
        // @ts-expect-error: the type of a user's name is text.
        publish(noted({ text: events[0]?.data.n }))
      },
    })
  })
})

describe('typed events without a schema', () => {
  test('31 the type of a vendor is the type of the data', () => {
    create().flow('f', {
      on: paid,
      key: (event) => event.data.data.object.client_reference_id,
      run: ({ events: [first] }) => {
        expectTypeOf(first!.data.type).toEqualTypeOf<'checkout.session.completed'>()
      },
    })
  })

  test('32 a field that the vendor lacks does not compile', () => {
    // @ts-expect-error: a session has no field "clientReferenceId".
    create().flow('f', { on: paid, key: (event) => event.data.data.object.clientReferenceId, run })
  })

  test('33 a list may contain definitions with and without a schema', () => {
    create().flow('f', {
      on: [edited, noted],
      key: (event) => ('text' in event.data ? event.data.text : event.data.user),
      run,
    })
  })

  test('34 a schema must be a Standard Schema', () => {
    // @ts-expect-error: an object is not a schema.
    expect(() => defineEvent('note', { text: 'string' })).toThrow('must be a Standard Schema')
  })
})

describe('typed events of a delivery', () => {
  test('35 window gets the data', () => {
    create().delivery('d', { on: edited, window: (event) => ({ quiet: event.data.n === 1 ? '1s' : '2s' }) })
  })

  test('36 a field that the schema lacks does not compile', () => {
    // @ts-expect-error: the data has no field "column".
    create().delivery('d', { on: edited, window: (event) => ({ quiet: event.data.column }) })
  })
})
