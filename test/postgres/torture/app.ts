// The app of the torture test: a flow for each rule that a race could break, and handlers with every ending.
import { setTimeout } from 'node:timers/promises'
import {
  done,
  drop,
  partial,
  PermanentError,
  retry,
  Sluice,
  snooze,
  type Ending,
  type Run,
} from '../../../src/index.ts'
import type { EventInput } from '../../../src/model/event.ts'
import type { Store } from '../../../src/store/contract/index.ts'
import type { How, Ledger } from './ledger.ts'
import { BOUNDS, inputOf, stepOf, type Act, type Data, type Input } from './plan.ts'

export const LEASE = 1_500
const HEARTBEAT = 300
const POLL = 250
const RUNS_AT_ONCE = 12
const GRACE = 5_000
const TIMEOUT = 250
const CANCELLABLE_MS = 60

/** What the apps of one torture test share. */
export interface Scene {
  readonly seed: number
  readonly ledger: Ledger
  /** From now on, every handler succeeds and every key function works. */
  isCalm: boolean
}

export function tortured(name: string, store: Store, scene: Scene): Sluice {
  const times = { lease: LEASE, heartbeat: HEARTBEAT, poll: POLL, shutdownTimeout: GRACE }
  const app = new Sluice({ ...times, store, process: name, maxConcurrentRuns: RUNS_AT_ONCE, log: false })
  const paced = app.limit('torture', { rate: 30, per: '1s', maxWait: 100 })
  const run = (one: Run): Promise<Ending | void> => handled(name, scene, one)
  const base = { run, retry: [10, 25], timeout: TIMEOUT } as const
  const keyed = { ...base, key } as const
  return app
    .flow('single', { ...base, on: ['app/single', 'app/both'] })
    .flow('gather', { ...keyed, on: ['app/gather', 'app/both'], window: { quiet: 20, max: 80, maxEvents: 6 } })
    .flow('shared', {
      ...keyed,
      on: 'app/shared',
      share: 'tenant',
      concurrency: BOUNDS.shared,
      whileRunning: 'requeue',
    })
    .flow('strict', { ...keyed, on: 'app/strict', concurrency: BOUNDS.strict })
    .flow('blocking', { ...keyed, on: 'app/blocking', onDead: 'block' })
    .flow('newest', { ...keyed, on: 'app/newest', take: 'last', window: { quiet: 25, max: 100 } })
    .flow('oldest', { ...keyed, on: 'app/oldest', take: 'first' })
    .flow('leading', { ...keyed, on: 'app/leading', window: { quiet: 120, max: 500, leading: true } })
    .flow('cancelling', { ...keyed, on: 'app/cancelling', whileRunning: 'cancel', window: { quiet: 30, max: 2_000 } })
    .flow('fanned', { ...base, key: keys, on: 'app/fanned' })
    .flow('hurried', {
      ...keyed,
      on: 'app/hurried',
      window: { quiet: '1m', max: '1m' },
      maxLanesPerTenant: BOUNDS.hurried,
    })
    .flow('paced', { ...base, on: 'app/paced', pace: paced })
    .flow('relay', { ...base, on: 'app/relay' })
    .flow('parcel', { ...keyed, on: 'app/parcel' })
    .flow('wide', { ...base, key: keys, on: 'app/wide' })
    .flow('odd', { ...keyed, on: 'app/odd', key: (event) => keyOfOdd(key(event), scene) })
}

function keys({ data }: { readonly data: unknown }): readonly string[] {
  return (data as Data).keys
}

function key(event: { readonly data: unknown }): string {
  return keys(event)[0] ?? ''
}

function keyOfOdd(found: string, { isCalm }: Scene): string {
  if (isCalm) return found
  throw new Error('no key yet')
}

async function handled(app: string, { seed, ledger, isCalm }: Scene, run: Run): Promise<Ending | void> {
  const lease = ledger.current(app, run.id)
  if (lease === undefined) {
    ledger.wrong.push(`${run.id} of ${run.flow} began in ${app}, which never claimed it`)
    return undefined
  }
  const labels = run.events.map(({ id }) => id)
  // Events may have been purged before their bodies were read.
  if (labels.some((label) => !lease.events.includes(label)))
    ledger.wrong.push(`${run.id} has other events than its lease`)
  lease.entered = Date.now()
  let how: How = 'aborted'
  try {
    const step = typeof run.state === 'number' ? run.state : 0
    const plan = stepOf(seed, labels[0] ?? run.id, run.attempt, step)
    const act = isCalm || run.flow === 'wide' ? 'done' : plan.act
    await worked(run, act === 'timeout' ? 2 * TIMEOUT : run.flow === 'cancelling' ? CANCELLABLE_MS : plan.ms)
    // One handler in three calls `commit`, one checks its signal, and one does neither: its work then counts.
    if (run.flow === 'cancelling' && plan.publishes === 1 && (await run.commit()) === 'cancelled') {
      how = 'gave-up'
      return undefined
    }
    if (plan.publishes === 0) run.signal.throwIfAborted()
    if (run.flow === 'relay') run.publish(parcelsOf(run, step, plan.publishes))
    how = HOW[act]
    return endingOf(act, run, step)
  } finally {
    lease.left = Date.now()
    lease.how = how
    lease.wasAborted = run.signal.aborted
  }
}

const HOW = {
  done: 'done',
  nothing: 'done',
  snooze: 'snooze',
  retry: 'retry',
  drop: 'drop',
  partial: 'partial',
  throw: 'throw',
  permanent: 'permanent',
  nonsense: 'nonsense',
  timeout: 'done',
} as const satisfies Record<Act, How>

/** Behaves as handlers with and without support for cancelling: half of them check their signal only at the end. */
async function worked({ flow, signal }: Run, ms: number): Promise<void> {
  await setTimeout(ms, undefined, flow === 'cancelling' ? {} : { signal })
}

function parcelsOf({ id }: Run, step: number, n: number): readonly EventInput[] {
  return Array.from({ length: n }, (_, at): Input => inputOf(`${id}/${step}/${at}`, 'parcel'))
}

function endingOf(act: Act, run: Run, step: number): Ending | undefined {
  switch (act) {
    case 'done':
      return done
    case 'nothing':
    case 'timeout':
      return undefined
    case 'snooze':
      return snooze({ after: 5, state: step + 1 })
    case 'retry':
      return retry({ after: 5, reason: 'asked for' })
    case 'drop':
      return drop('not wanted')
    case 'partial':
      return partial({
        failed: run.events.flatMap(({ id }, at) =>
          at % 3 === 2 ? [] : [{ id, reason: 'not accepted', permanent: at % 3 === 0 }],
        ),
      })
    case 'throw':
      throw new Error('now and then')
    case 'permanent':
      throw new PermanentError('never')
    case 'nonsense':
      return 'nonsense' as never
  }
}
