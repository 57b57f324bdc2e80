// The receiving part alone, as one of several processes on a store, and a store that records what is written to it.
import { Traces } from '../../src/observe/trace/spans.ts'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { Publisher } from '../../src/publish/publisher.ts'
import { Receiving } from '../../src/app/receiving.ts'
import { Keyring } from '../../src/crypto/keyring.ts'
import type { Store } from '../../src/index.ts'

interface Process {
  readonly clock: Clock
  readonly key?: string | readonly string[]
}

const EVERYBODY = { rate: Infinity, per: 1_000 } as const
const emit = (): void => {}
const api = (): Promise<never> => Promise.reject(new Error('This scene has no API.'))

/** Stopped at the end of the test. */
export function receivingOn(store: Store, { clock, key = [] }: Process): Receiving {
  const now = (): number => clock.now()
  const opened = (): Promise<Store> => Promise.resolve(store)
  const publisher = new Publisher({
    store: opened,
    routes: () => ({ flows: [], foreign: [], pressureLevel: () => 0, measure: (_flow, asked) => asked() }),
    routesEpoch: () => 1,
    refreshRoutes: async () => {},
    now,
    overlaps: () => false,
    dedupeFor: 1_000,
    emit,
  })
  const seal = new Keyring([key].flat())
  const receiving = new Receiving({
    clock,
    now,
    store: opened,
    publisher,
    keyring: seal,
    addressRate: EVERYBODY,
    emit,
    api,
    traces: new Traces(undefined),
  })
  onTestFinished(() => receiving.stop())
  return receiving
}

type WriteDocs = Store['writeDocs']

/** The same store with `write` in place of writeDocs. */
export function writingBy(real: Store, write: (call: Parameters<WriteDocs>[0]) => ReturnType<WriteDocs>): Store {
  return new Proxy(real, {
    get: (target, name): unknown => {
      const member: unknown = name === 'writeDocs' ? write : Reflect.get(target, name)
      return typeof member === 'function' && name !== 'writeDocs' ? member.bind(target) : member
    },
  })
}

/** The same store, and every document that was written to it. */
export class Written {
  readonly docs: { readonly kind: string; readonly id: string; readonly bytes: number }[] = []
  readonly store: Store
  #heard = Promise.withResolvers<void>()

  constructor(real: Store) {
    this.store = writingBy(real, async (call) => {
      const reply = await real.writeDocs(call)
      if (reply.kind === 'conflict') return reply
      for (const { kind, id, body } of call.writes) this.docs.push({ kind, id, bytes: body?.length ?? 0 })
      this.#heard.resolve()
      this.#heard = Promise.withResolvers()
      return reply
    })
  }

  /** Resolves when this many were written. */
  async reached(count: number): Promise<void> {
    while (this.docs.length < count) await this.#heard.promise
  }
}
