// An operator who holds, drops, purges, pauses and retries at random, and records the results.
import { setTimeout } from 'node:timers/promises'
import { laneId } from '../../../src/model/identity.ts'
import type { Sluice } from '../../../src/index.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import type { Acted, Ledger } from './ledger.ts'
import { LEAVING, oneOf, STEERED } from './plan.ts'
import { noteError, untilAnswered } from './patient.ts'

export interface Operator {
  readonly app: Sluice
  readonly ledger: Ledger
  readonly seed: number
  readonly acts: number
}

type Deed = keyof typeof DEEDS

/** The weight of each act. */
const DEEDS = {
  hold: 3,
  pause: 1,
  drop: 2,
  'purge-lane': 2,
  'purge-event': 2,
  retry: 3,
  'retry-all': 1,
  'drop-dead-letter': 2,
  'run-now': 2,
  cancel: 2,
  explain: 1,
} as const
const LONGEST_PAUSE_MS = 80
const LONGEST_HOLD_MS = 400
/** A tenant is purged after these shares of all acts. */
const TENANT_LEAVES = [0.4, 0.8]

export async function operate(operator: Operator): Promise<void> {
  const { seed, acts } = operator
  const chance = new Chance(seedOf(`${seed} operator`))
  const open: Promise<void>[] = []
  // A second hold of a lane would end together with the first.
  const held = new Set<string>()
  const alone = async (name: string, deed: () => Promise<void>): Promise<void> => {
    if (held.has(name)) return
    held.add(name)
    await deed()
    held.delete(name)
  }
  for (let act = 0; act < acts; act++) {
    if (TENANT_LEAVES.some((share) => act === Math.floor(share * acts))) await purge(operator, { tenant: LEAVING })
    const deed = oneOf(chance, Object.entries(DEEDS) as [Deed, number][])
    const [flow, key] = STEERED[chance.below(STEERED.length)] ?? ['gather', 'k0']
    const ms = chance.next() * LONGEST_HOLD_MS
    if (deed === 'hold') open.push(alone(`${flow} ${key}`, () => hold(operator, flow, key, ms)))
    else if (deed === 'pause') open.push(alone(flow, () => pause(operator, flow, ms)))
    else await done(operator, deed, [flow, key], chance)
    await setTimeout(chance.next() * LONGEST_PAUSE_MS)
  }
  await Promise.all(open)
}

async function done(
  operator: Operator,
  deed: Exclude<Deed, 'hold' | 'pause'>,
  [flow, key]: readonly [string, string],
  chance: Chance,
): Promise<void> {
  const { app, ledger } = operator
  switch (deed) {
    case 'drop': {
      const act = ledger.act('drop-lane', laneId(flow, key))
      return asked(operator, () => app.admin.lanes.drop(flow, key), act)
    }
    case 'purge-lane':
      return purge(operator, { flow, key })
    case 'purge-event': {
      const { stored } = ledger
      const one = stored[chance.below(stored.length)]
      return one === undefined ? undefined : purge(operator, { event: one.input.id })
    }
    case 'retry': {
      const id = await someDeadLetter(operator, chance)
      return id === undefined ? undefined : asked(operator, () => app.admin.deadLetters.retry(id))
    }
    case 'retry-all':
      return asked(operator, () => app.admin.deadLetters.retry({ flow }))
    case 'drop-dead-letter': {
      const id = await someDeadLetter(operator, chance)
      if (id === undefined) return undefined
      return asked(operator, () => app.admin.deadLetters.drop(id), ledger.act('drop-dead-letter', id))
    }
    case 'cancel':
      return asked(operator, () => app.admin.lanes.cancel(flow, key))
    case 'explain':
      return asked(operator, () => app.explain(flow, key))
    case 'run-now':
      return asked(operator, () => app.admin.lanes.runNow(flow, key))
  }
}

async function someDeadLetter({ app, ledger }: Operator, chance: Chance): Promise<string | undefined> {
  try {
    const { items } = await app.admin.deadLetters.list()
    return items[chance.below(items.length)]?.id
  } catch (error) {
    noteError(ledger, 'deadLetters.list', error)
    return undefined
  }
}

/** Records the act. */
async function asked({ ledger }: Operator, call: () => Promise<unknown>, act?: Acted): Promise<void> {
  const tried = (): Promise<unknown> => {
    if (act !== undefined) act.lastBegan = Date.now()
    return call()
  }
  const answer = await untilAnswered(ledger, act?.action ?? 'an operator', tried)
  if (act === undefined) return
  act.ended = Date.now()
  act.answer = typeof answer === 'string' ? answer : 'ok'
}

type What = { readonly flow: string; readonly key: string } | { readonly tenant: string } | { readonly event: string }

function purge(operator: Operator, what: What): Promise<void> {
  const { app, ledger } = operator
  const act =
    'tenant' in what
      ? ledger.act('purge-tenant', what.tenant)
      : 'event' in what
        ? ledger.act('purge-event', what.event)
        : ledger.act('purge-lane', laneId(what.flow, what.key))
  return asked(operator, () => app.admin.purge(what), act)
}

async function hold(operator: Operator, flow: string, key: string, ms: number): Promise<void> {
  const { app, ledger } = operator
  const act = ledger.act('hold', laneId(flow, key))
  await asked(operator, () => app.admin.lanes.hold(flow, key, { reason: 'a look', by: 'operator' }), act)
  await setTimeout(ms)
  act.undone = Date.now()
  await asked(operator, () => app.admin.lanes.unhold(flow, key))
}

async function pause(operator: Operator, flow: string, ms: number): Promise<void> {
  const { app, ledger } = operator
  const act = ledger.act('pause', flow)
  await asked(operator, () => app.admin.flows.pause(flow, { reason: 'a look', by: 'operator' }), act)
  await setTimeout(ms)
  act.undone = Date.now()
  await asked(operator, () => app.admin.flows.resume(flow))
}
