// A random history of an app, identical for the same seed on every store: flows that fail, drop, accept a part, snooze, give up
// and take only the last event, and operators who retry, drop, hold, pause and purge.
import { snooze, drop, partial, PermanentError, type Ending, type Run, type Sluice } from '../../src/index.ts'
import type { Duration } from '../../src/model/duration.ts'
import type { EventInput } from '../../src/model/event.ts'

export interface Stage {
  readonly app: Sluice
  send(event: EventInput | readonly EventInput[]): Promise<unknown>
  advance(by: Duration): Promise<void>
  settled(): Promise<void>
}

type Random = () => number
type Fate = 'done' | 'fails once' | 'fails' | 'dead' | 'dropped' | 'part' | 'snoozed'
const FATES: readonly Fate[] = ['done', 'done', 'done', 'fails once', 'fails', 'dead', 'dropped', 'part', 'snoozed']
const FLOWS = ['batches', 'singles', 'last'] as const
const RETRY = { delays: ['1m', '10m'], jitter: 0 } as const

const fateOf = (data: unknown): Fate => (data as { readonly fate: Fate }).fate
const keyOf = (data: unknown): string => (data as { readonly key: string }).key

/** The first event of the run decides its ending. */
function run({ events, attempt, state }: Run): Ending | undefined {
  switch (fateOf(events[0]?.data)) {
    case 'done':
      return undefined
    case 'dropped':
      return drop('not wanted')
    case 'dead':
      throw new PermanentError('never')
    case 'snoozed':
      return state === undefined ? snooze({ after: '30s', state: 'seen' }) : undefined
    case 'part':
      return attempt === 1 ? partial({ failed: [{ id: events.at(-1)?.id ?? '', reason: 'later' }] }) : undefined
    case 'fails once':
      if (attempt === 1) throw new Error('once')
      return undefined
    case 'fails':
      throw new Error(`no answer, ${attempt}`)
  }
}

export function declare(app: Sluice): void {
  app
    .flow('batches', {
      on: 'x',
      key: (event) => keyOf(event.data),
      window: { quiet: '5s', maxEvents: 3 },
      retry: RETRY,
      run,
    })
    .flow('singles', { on: ['x', 'y'], retry: RETRY, run })
    .flow('last', {
      on: 'y',
      key: (event) => keyOf(event.data),
      take: 'last',
      window: { quiet: '20s' },
      retry: RETRY,
      run,
    })
    .flow('keyless', { on: 'z', key: () => JSON.parse('{') as string, run: () => {} })
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

/** Yields its steps one after the other; the caller checks between them. */
export function stepsOf(random: Random, n: number): readonly ((stage: Stage) => Promise<unknown>)[] {
  let sent = 0
  const event = (): EventInput => {
    const data = { fate: pick(random, FATES), key: `k${Math.floor(random() * 3)}` }
    const subject = data.key === 'k0' ? {} : { subject: data.key }
    return { id: `e${String(sent++).padStart(3, '0')}`, type: pick(random, ['x', 'x', 'y', 'z']), data, ...subject }
  }
  const step = (): ((stage: Stage) => Promise<unknown>) => {
    const chance = random()
    const key = `k${Math.floor(random() * 3)}`
    const flow = pick(random, FLOWS)
    if (chance < 0.4) {
      const events = Array.from({ length: 1 + Math.floor(random() * 5) }, event)
      return (stage) => stage.send(events)
    }
    if (chance < 0.7) {
      const by = pick(random, ['1s', '5s', '20s', '1m', '10m'] as const)
      return (stage) => stage.advance(by)
    }
    const which = random()
    if (chance < 0.8) return (stage) => actOnDead(stage, which)
    if (chance < 0.85) return ({ app }) => app.admin.flows.pause(flow, { reason: 'test', by: 'test' })
    if (chance < 0.91) return ({ app }) => app.admin.flows.resume(flow)
    if (chance < 0.95) {
      const id = `e${String(Math.floor(random() * Math.max(1, sent))).padStart(3, '0')}`
      return ({ app }) => app.admin.purge({ event: id })
    }
    if (chance < 0.98)
      return ({ app }) => app.admin.lanes.hold('batches', key, { reason: 'test', by: 'test', for: '1m' })
    return ({ app }) => app.admin.lanes.drop('batches', key)
  }
  return Array.from({ length: n }, step)
}

/** The name consists of its events, because each store assigns its own ids. */
async function actOnDead({ app }: Stage, which: number): Promise<void> {
  const { items } = await app.admin.deadLetters.list()
  const deadLetters = items
    .filter(({ flow }) => flow !== 'keyless')
    .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  const deadLetter = deadLetters[Math.floor(which * deadLetters.length)]
  if (deadLetter !== undefined)
    await (which < 0.7 ? app.admin.deadLetters.retry(deadLetter.id) : app.admin.deadLetters.drop(deadLetter.id))
}

const nameOf = (deadLetter: { readonly flow: string; readonly events: readonly string[] }): string =>
  `${deadLetter.flow} ${deadLetter.events.join(' ')}`
