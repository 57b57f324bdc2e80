// The app that is killed. It has a flow of every kind that a crash could affect, and each run logs its start and end.
import { setTimeout } from 'node:timers/promises'
import { snooze, PermanentError, Sluice, type Ending, type Run, type SluiceOptions } from '../../src/index.ts'
import type { Chance } from '../sqlite/kill-load.ts'
import {
  HEARTBEAT,
  inputOf,
  isDoomed,
  isSlow,
  LEASE,
  now,
  parcelsOf,
  STEPS,
  type How,
  type Line,
  type Told,
} from './load.ts'

type Tell = (line: Line) => void
type Work = (run: Run, step: number) => Ending | void

const LONGEST_MS = 30
const SLOW_MS = 450
const FAILS = 0.25

type AppOptions = Pick<SluiceOptions, 'store' | 'process' | 'lease' | 'heartbeat'>

export function appOn(options: AppOptions, chance: Chance, tell: Tell): Sluice {
  const app = new Sluice({ lease: LEASE, heartbeat: HEARTBEAT, ...options, poll: 50, log: false })
  const handler = (work: Work) => (run: Run) => handled(run, work, chance, tell)
  const plain = handler(published)
  return app
    .flow('gather', { on: 'app/note', key, window: { quiet: 15, max: 60, maxEvents: 20 }, run: plain })
    .flow('single', { on: ['app/ping', 'app/order'], run: plain })
    .flow('relay', { on: 'app/order', run: plain })
    .flow('parcels', { on: 'app/parcel', key, whileRunning: 'requeue', run: plain })
    .flow('strict', { on: 'app/turn', key, concurrency: 1, run: plain })
    .flow('shaky', { on: 'app/fix', key, retry: [10, 20, 40, 80], run: handler((run) => failing(run, chance)) })
    .flow('steps', { on: 'app/task', run: handler(stepping) })
}

function key(event: { readonly data: unknown }): string {
  return (event.data as Told).key
}

function published(run: Run, step: number): void {
  run.publish(parcelsOf(run.flow, run.id, step).map((label) => inputOf(label, 'parcel')))
}

function failing(run: Run, chance: Chance): void {
  if (labelsOf(run).some(isDoomed)) throw new PermanentError('doomed')
  if (chance.happens(FAILS)) throw new Error('now and then')
}

function stepping(run: Run, step: number): Ending | void {
  published(run, step)
  if (step + 1 < STEPS) return snooze({ after: 10, state: step + 1 })
  return undefined
}

function labelsOf(run: Run): readonly string[] {
  return run.events.map((event) => (event.data as Told).label)
}

async function handled(run: Run, work: Work, chance: Chance, tell: Tell): Promise<Ending | void> {
  const { flow, attempt, id, state } = run
  const labels = labelsOf(run)
  const step = typeof state === 'number' ? state : 0
  // Nothing else happens in this turn of the event loop, so a handler runs exactly between its two log lines.
  tell({ kind: 'entered', at: now(), flow, key: run.key, run: id, attempt, step, events: labels })
  let how: How = 'aborted'
  try {
    await setTimeout(flow === 'single' && labels.some(isSlow) ? SLOW_MS : chance.next() * LONGEST_MS, undefined, {
      signal: run.signal,
    })
    how = 'failed'
    const ending = work(run, step)
    how = ending === undefined ? 'done' : 'again'
    return ending
  } catch (error) {
    if (error instanceof PermanentError) how = 'permanent'
    throw error
  } finally {
    tell({ kind: 'left', at: now(), run: id, how })
  }
}
