// Makes lanes due one after the other at a steady rate, and measures how long each waits for its handler.
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice } from '../../src/index.ts'
import { rounded } from './folder.ts'

export interface DueLoad {
  readonly perSecond: number
  readonly seconds: number
  /** The first lanes are not counted: the program is still being compiled. */
  readonly warmUp: number
  /** The address of the store. */
  readonly store: string
}

export interface Lateness {
  readonly lanes: number
  /** From the deadline to the start of the handler, in ms. */
  readonly p50: number
  readonly p99: number
  readonly max: number
  /** Below 0 if a handler started before its deadline. */
  readonly earliest: number
  /** The lowest p99 of all seconds: the lateness when nothing else uses the core or the disk. */
  readonly bestSecondP99: number
  /** The same by the engine's own `run.claimed`, before the handler: a cross-check. */
  readonly claimedP99: number
  /** How many lanes became due in the busiest and in the least busy second: whether the rate was steady. */
  readonly mostInASecond: number
  readonly fewestInASecond: number
}

/** Publishes small batches while other lanes become due. Each lane of a batch gets its own millisecond through its own quiet. */
const BATCH_EVERY = 10
const QUIET = 1_000

export async function lateness(load: DueLoad): Promise<Lateness> {
  const { perSecond, seconds, warmUp, store } = load
  const entered: { readonly due: number; readonly late: number }[] = []
  const claimed: number[] = []
  const all = perSecond * (seconds + warmUp)
  const allEntered = Promise.withResolvers<void>()
  const app = new Sluice({ store, log: false })
  app.flow('due', {
    on: 'due',
    key: (event) => event.id,
    window: (event) => ({ quiet: Number(event.subject) }),
    run: ({ events }) => {
      const now = Date.now()
      const last = events.at(-1)
      const due = (last?.arrived ?? NaN) + Number(last?.subject)
      entered.push({ due, late: now - due })
      if (entered.length === all) allEntered.resolve()
    },
  })
  app.on('run.claimed', ({ late }) => void claimed.push(late))
  await app.start()
  const began = performance.now()
  for (let published = 0; published < all;) {
    await sleep(Math.max(0, began + (published / perSecond) * 1_000 - performance.now()))
    const many = Math.min(all - published, Math.round((perSecond * BATCH_EVERY) / 1_000))
    const quiet = (n: number): string => String(QUIET + Math.floor((n * BATCH_EVERY) / many))
    void app.publish(Array.from({ length: many }, (_, n) => ({ type: 'due', subject: quiet(n) })))
    published += many
  }
  await allEntered.promise
  await app.stop()
  return figure(entered, claimed, load)
}

function figure(
  entered: readonly { readonly due: number; readonly late: number }[],
  claimed: readonly number[],
  { perSecond, warmUp }: DueLoad,
): Lateness {
  const skipped = perSecond * warmUp
  const byDue = entered.toSorted((one, other) => one.due - other.due).slice(skipped)
  const late = sorted(byDue.map((one) => one.late))
  const first = byDue[0]?.due ?? 0
  const seconds = Array.from(Map.groupBy(byDue, ({ due }) => Math.floor((due - first) / 1_000)).values())
  // The last second is incomplete.
  const whole = seconds.slice(0, -1).map((second) => second.length)
  return {
    lanes: late.length,
    p50: quantile(late, 0.5),
    p99: quantile(late, 0.99),
    max: late.at(-1) ?? NaN,
    earliest: late[0] ?? NaN,
    bestSecondP99: Math.min(
      ...seconds.slice(0, -1).map((second) => quantile(sorted(second.map((one) => one.late)), 0.99)),
    ),
    claimedP99: rounded(quantile(sorted(claimed.slice(skipped)), 0.99)),
    mostInASecond: Math.max(...whole),
    fewestInASecond: Math.min(...whole),
  }
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((one, other) => one - other)
}

/** A quantile of sorted values. */
function quantile(values: readonly number[], q: number): number {
  return values[Math.max(0, Math.ceil(values.length * q) - 1)] ?? NaN
}
