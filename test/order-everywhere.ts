// Many events, published one by one while others are delivered, handled and fail. Everything that shows them must show them in the
// order in which they were published.
import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { PermanentError, type Sluice, type SluiceOptions } from '../src/index.ts'
import type { TestFetch } from '../src/testing/index.ts'

const PER_RUN = 250
/** The clock moves after this many events, so that runs begin between two of them. */
const PER_STEP = 400

interface Numbered {
  readonly n: number
}

interface Stored {
  readonly data: Numbered
}

interface Stage {
  readonly app: Sluice
  readonly advance: (by: '1s' | '1h') => Promise<void>
}

export const OPTIONS: Pick<SluiceOptions, 'encryptionKey'> = { encryptionKey: randomBytes(32).toString('base64') }

export interface Seen {
  readonly declare: (app: Sluice) => unknown
  readonly fetch: TestFetch
  readonly handled: readonly number[]
  readonly delivered: readonly number[]
}

/** `watchOrder` returns an app's declarations and its subscriber, and what they have seen. */
export function watchOrder(): Seen {
  const handled: number[] = []
  const delivered: number[] = []
  const batch = { every: '1s', maxEvents: PER_RUN } as const
  return {
    handled,
    delivered,
    declare: (app) =>
      app
        .flow('handler', {
          on: 'step',
          key: () => 'all',
          batch,
          run: ({ events }) => void handled.push(...events.map(({ data }) => (data as Numbered).n)),
        })
        .flow('dead', {
          on: 'step',
          key: () => 'all',
          batch,
          retry: [],
          run: () => {
            throw new PermanentError('never')
          },
        })
        .delivery('delivered', { on: 'step', batch }),
    fetch: async (request) => {
      const posted = (await request.json()) as { readonly data: { readonly events: readonly Stored[] } }
      delivered.push(...posted.data.events.map(({ data }) => data.n))
      return new Response()
    },
  }
}

export async function publishOneByOne({ app, advance }: Stage, count: number): Promise<void> {
  await app.endpoints.create({ url: 'https://subscriber.example/hook' })
  for (let n = 0; n < count; n++) {
    await app.publish({ type: 'step', data: { n } })
    if (n % PER_STEP === PER_STEP - 1) await advance('1s')
  }
  await advance('1h')
}

export async function expectOrder({ app }: Stage, { handled, delivered }: Seen, count: number): Promise<void> {
  const all = Array.from({ length: count }, (_, n) => n)
  expect(handled).toEqual(all)
  expect(delivered).toEqual(all)
  // The newest dead letter comes first, each with its events in their order.
  const deadLetters: (readonly number[])[] = []
  for await (const line of app.admin.deadLetters.export()) {
    const { events } = JSON.parse(line) as { readonly events: readonly Stored[] }
    deadLetters.push(events.map(({ data }) => data.n))
  }
  expect(deadLetters.length).toBeGreaterThanOrEqual(count / PER_RUN)
  expect(deadLetters.toReversed().flat()).toEqual(all)
}
