// Flows that bring events into every state of the view `work`, on any store.
import { z } from 'zod'
import { defineEvent, drop, partial, PermanentError, type Sluice } from '../src/index.ts'
import type { EventInput } from '../src/model/event.ts'
import { unverified } from '../src/sources/index.ts'

export const fails = (): never => {
  throw new Error('no answer')
}

const checked = defineEvent('web/checked', z.object({ user: z.string() }))

/** A request of the source `web`, whose data the flow `checked` rejects. */
export function rejectedRequest(): Request {
  const headers = { 'content-type': 'application/json' }
  return new Request('http://localhost/in/web', { method: 'POST', body: '{"user":7}', headers })
}

/** `running`: what the run of `runs` waits for. */
export function everyWord(app: Sluice, running: Promise<void>): Sluice {
  return app
    .source('web', unverified({ verify: 'none', type: () => 'checked' }))
    .flow('checked', { on: checked, run: () => {} })
    .flow('done', { on: 'done', run: () => {} })
    .flow('also', { on: 'done', run: () => {} })
    .flow('waits', { on: 'waits', window: { quiet: '1h' }, key: () => 'k', run: () => {} })
    .flow('failing', { on: 'failing', retry: ['5h'], key: () => 'k', run: fails })
    .flow('dead', { on: 'dead', retry: [], run: fails })
    .flow('dropped', { on: 'dropped', run: () => drop('not for us') })
    .flow('last', { on: 'last', take: 'last', window: { quiet: '1s' }, key: () => 'k', run: () => {} })
    .flow('keyless', { on: 'keyless', key: () => JSON.parse('{') as string, run: () => {} })
    .flow('runs', { on: 'runs', run: () => running })
}

/** A run of one event of `typed` continues until it is cancelled; `part` does not accept its second event at first. */
export function typingAndParts(app: Sluice): Sluice {
  return app
    .flow('typing', {
      on: 'typed',
      key: () => 'k',
      window: { quiet: '1s', max: '1h' },
      whileRunning: 'cancel',
      run: ({ events, signal }) =>
        events.length > 1
          ? undefined
          : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    })
    .flow('parts', {
      on: 'part',
      key: () => 'k',
      window: { quiet: '1s' },
      retry: { delays: ['1h'], jitter: 0 },
      run: ({ events, attempt }) =>
        attempt === 1 ? partial({ failed: [{ id: events[1]?.id ?? '', reason: 'not now' }] }) : undefined,
    })
}

/** The data for the queries of the document. */
export function monitored(app: Sluice): Sluice {
  return app
    .flow('timed', {
      on: 'timed',
      window: (event) => ({ quiet: `${event.data as number}s` as const }),
      run: () => {},
    })
    .flow('dead', {
      on: 'dead',
      run: () => {
        throw new PermanentError('never')
      },
    })
    .flow('failing', { on: 'failing', retry: ['9h'], run: fails })
    .flow('waits', { on: 'waits', window: { quiet: '9h' }, run: () => {} })
}

interface Sends {
  readonly send: (events: readonly EventInput[]) => Promise<unknown>
  readonly advance: (by: '30s') => Promise<void>
}

const fromGarmin = (type: string, data: unknown = null): EventInput => ({ type, source: 'garmin', data })

/** Twenty are done after 1 to 20 s, two are dead, one is failing, three wait. */
export async function sendMonitored({ send, advance }: Sends): Promise<void> {
  await send(Array.from({ length: 20 }, (_, n) => fromGarmin('timed', n + 1)))
  await send(['dead', 'dead', 'failing', 'waits', 'waits', 'waits'].map((type) => fromGarmin(type)))
  await advance('30s')
}
