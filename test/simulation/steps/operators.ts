// Operators' actions: steer lanes, dead letters, unrouted events and flows, purge, change the routes, read (L9, L14, L15, L18).
import { NEVER } from '../../../src/clock.ts'
import { PURGED_TEXT } from '../../../src/model/steer.ts'
import type { LaneAction, PurgeReply, SteerCall, SteerReply } from '../../../src/store/contract/index.ts'
import type { Command } from '../commands.ts'
import { namedDeadLetter, purged, steered } from '../ledger/operators.ts'
import { purge, type Purged } from '../model/purge.ts'
import type { ModelDeadLetter } from '../model/state.ts'
import { steer } from '../model/steer.ts'
import { laneName, laneOf, tenantOf } from '../settings.ts'
import { demand, expectSame } from '../violation.ts'
import type { Issued, World } from '../world.ts'

type Of<K extends Command['kind']> = Extract<Command, { readonly kind: K }>

export function issueSteer(world: World, call: SteerCall): Issued {
  const act = typeof call.act === 'string' ? call.act : call.act.kind
  const names = call.ids.map((id) => (typeof id === 'string' ? laneName(id) : String(id)))
  return {
    label: `steer ${call.what} ${act} ${call.what === 'dead' ? 'a dead letter' : names.join(', ')}`,
    send: () => world.store.steer(call),
    check(reply) {
      const { results } = reply as SteerReply
      world.checkReply(reply as SteerReply)
      expectSame(`steer ${call.what} ${act}`, steer(world.model, call, results), results)
      steered(world.ledger, { call, results, now: world.clock.now(), unrouted: world.unrouted })
      for (const result of results) world.reach(`steer: ${call.what} ${act} ${result}`)
      world.note(`steer ${results.join(' ')}`)
    },
  }
}

function laneAct(command: Of<'steer-lane'>): LaneAction {
  if (command.act !== 'hold') return { kind: command.act }
  return { kind: 'hold', reason: 'a person looks', by: 'simulation', for: command.for < 0 ? NEVER : command.for }
}

const NO_LANE = 7

function laneAt(world: World, index: number): string {
  const lanes = [...world.model.lanes.keys()]
  return lanes[index % lanes.length] ?? laneOf(world.flow(0).name, 0)
}

export function steerLane(world: World, command: Of<'steer-lane'>): Issued {
  const lane = command.lane === NO_LANE ? 'a lane that is not' : laneAt(world, command.lane)
  return issueSteer(world, { what: 'lanes', ids: [lane], act: laneAct(command) })
}

export function deadLettersOf(world: World): readonly ModelDeadLetter[] {
  return [...world.model.lanes.values()].flatMap((lane) => lane.deadLetters)
}

/** Dead letters of a partial outcome have ids that only the list shows. */
export async function learnDeadLetters(world: World): Promise<void> {
  for (const deadLetter of deadLettersOf(world).filter((one) => one.id === undefined)) {
    const { items } = await world.store.find({ kind: 'dead', filter: { lane: deadLetter.lane }, cursor: '', n: 100 })
    const events = deadLetter.spots.map((spot) => spot.event).join()
    const found = items.find(
      (item) => !world.runIds.has(item.id) && item.events.join() === events && item.parent === deadLetter.parent,
    )
    demand(found !== undefined, `the dead letter of ${events} is missing`)
    deadLetter.id = found.id
    namedDeadLetter(world.ledger, { lane: deadLetter.lane, parent: deadLetter.parent, id: found.id, events })
    const run = world.model.lanes.get(deadLetter.lane)?.run
    if (run?.deadLetter === deadLetter) run.id = found.id
    world.runIds.add(found.id)
  }
}

export async function steerDead(world: World, command: Of<'steer-dead'>): Promise<Issued | undefined> {
  await learnDeadLetters(world)
  const deadLetters = deadLettersOf(world)
  const id = deadLetters[command.deadLetter % deadLetters.length]?.id
  return id === undefined ? undefined : issueSteer(world, { what: 'dead', ids: [id], act: command.act })
}

export function steerUnrouted(world: World, command: Of<'steer-unrouted'>): Issued | undefined {
  const entry = world.unrouted[command.entry % world.unrouted.length]
  return entry && issueSteer(world, { what: 'unrouted', ids: [entry.id], act: command.act })
}

export function steerFlow(world: World, command: Of<'steer-flow'>): Issued {
  const act = command.pause
    ? ({ kind: 'pause', reason: 'a person waits', by: 'simulation' } as const)
    : ({ kind: 'resume' } as const)
  return issueSteer(world, { what: 'flows', ids: [world.flow(command.flow).name], act })
}

function purgeWhat(world: World, command: Of<'purge'>): Purged | undefined {
  if (command.what === 'tenant') return { kind: 'tenant', tenant: tenantOf(command.pick % world.keys) }
  if (command.what === 'lane') return { kind: 'lanes', ids: [laneAt(world, command.pick)] }
  const event = world.events[world.events.length - 1 - (command.pick % Math.max(1, world.events.length))]
  return event && { kind: 'event', id: event.id }
}

const CALLS_OF_ONE_PURGE = 200

export function purgeStep(world: World, command: Of<'purge'>): Issued | undefined {
  const what = purgeWhat(world, command)
  if (what === undefined || (what.kind === 'tenant' && what.tenant === '')) return undefined
  const n = command.atOnce ? 1000 : 1
  return {
    label: `purge ${JSON.stringify(what)} by ${n}`,
    async send() {
      for (let calls = 0; calls < CALLS_OF_ONE_PURGE; calls++) {
        const reply = await world.store.purge({ what, n })
        if (!reply.more) return reply
      }
      return undefined
    },
    check(reply) {
      demand(reply !== undefined, 'a purge does not end')
      world.checkReply(reply as PurgeReply)
      const runsBefore = purgedRuns(world)
      purge(world.model, what)
      world.reach('purge: of a live run', purgedRuns(world) - runsBefore)
      world.reach(`purge: ${what.kind}`)
      world.recordsWereRemoved = true
      purged(world.ledger, {
        what,
        now: world.clock.now(),
        tenantOf: (id) => world.model.events.get(id)?.event.tenant ?? '',
      })
      world.note('purge')
    },
  }
}

function purgedRuns(world: World): number {
  return [...world.model.lanes.values()].filter((lane) => lane.run?.purged === true).length
}

export function raiseRoutes(world: World): Issued {
  return {
    label: 'raise the routes',
    send: () => world.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined }),
    check(reply) {
      const { routes } = reply as { routes: number }
      demand(routes > world.model.routes, `the epoch of the routes went from ${world.model.routes} to ${routes}`)
      world.model.routes = routes
      world.reach('routes raised')
    },
  }
}

/** Reads all dead letters and the stats, and compares them with the model. */
export function inspect(world: World): Issued {
  return {
    label: 'inspect',
    async send() {
      await learnDeadLetters(world)
      const flows = world.flows.map((flow) => flow.name)
      const pages = await Promise.all(
        flows.map((flow) => world.store.find({ kind: 'dead', filter: { flow }, cursor: '', n: 1000 })),
      )
      return { deadLetters: pages.flatMap((page) => page.items), stats: await world.store.stats() }
    },
    check(reply) {
      const { deadLetters, stats } = reply as {
        deadLetters: readonly {
          id: string
          state: string
          reason: string
          tries: number
          lapses: number
          blocks: boolean
          events: readonly string[]
          attempts: readonly unknown[]
        }[]
        stats: { deadLetters: number; flows: readonly { flow: string; paused: unknown }[] }
      }
      const cleared = new Set(deadLetters.filter(({ reason }) => reason === PURGED_TEXT).map(({ id }) => id))
      const ours = deadLettersOf(world).map((deadLetter) => {
        const isCleared = deadLetter.mayHaveLostReason && cleared.has(deadLetter.id ?? '')
        const events = deadLetter.spots.map((spot) => spot.event)
        return { ...deadLetter, events, ...(isCleared && { reason: PURGED_TEXT }) }
      })
      const silent = deadLetters.find((one) => one.reason !== 'crashed' && one.attempts.length === 0)
      demand(silent === undefined, 'L9: a dead letter lacks the ends of its attempts')
      const shown = (all: readonly Omit<(typeof deadLetters)[number], 'attempts'>[]): string[] =>
        all
          .map((one) => JSON.stringify([one.id, one.state, one.reason, one.tries, one.lapses, one.blocks, one.events]))
          .toSorted()
      expectSame('dead letters', shown(ours.map((one) => ({ ...one, id: one.id ?? '' }))), shown(deadLetters))
      expectSame('the count of dead letters', ours.length, stats.deadLetters)
      for (const { name } of world.flows) {
        const paused = stats.flows.find((one) => one.flow === name)?.paused !== undefined
        if (stats.flows.some((one) => one.flow === name))
          expectSame(`${name} is paused`, world.model.paused.has(name), paused)
      }
    },
  }
}
