// What processes do besides settle-and-claim: renew, place unrouted events, replay, share permits, run maintenance; and how they fail.
import { NEVER } from '../../../src/clock.ts'
import type {
  UnroutedReason,
  LeasePermitsCall,
  LeasePermitsReply,
  PlaceCall,
  PlaceReply,
  RenewCall,
  RenewReply,
  ClaimUnroutedCall,
  ClaimUnroutedReply,
  MaintainReply,
} from '../../../src/store/contract/index.ts'
import type { Command } from '../commands.ts'
import { granted, placed, renewed } from '../ledger/maintenance.ts'
import { claimUnrouted, place } from '../model/unrouted.ts'
import { ANY_ERROR } from '../model/place.ts'
import { renew } from '../model/settle.ts'
import { maintain } from '../model/state.ts'
import { LEASE, laneName, placeIn } from '../settings.ts'
import { demand, expectSame } from '../violation.ts'
import type { Issued, World } from '../world.ts'

type Of<K extends Command['kind']> = Extract<Command, { readonly kind: K }>

export function renewStep(world: World, command: Of<'renew'>): Issued | undefined {
  const from = command.stale ? world.spent : world.holder(command.who).held
  const lease = from[command.lease % from.length]
  if (lease === undefined) return undefined
  const call: RenewCall = { lease: LEASE, runs: [{ lane: lease.lane, token: lease.token, commit: command.commit }] }
  return {
    label: `renew ${laneName(lease.lane)}${command.commit ? ' and commit' : ''}${command.stale ? ' (spent)' : ''}`,
    send: () => world.store.renew(call),
    check(reply) {
      const { results } = reply as RenewReply
      world.checkReply(reply as RenewReply)
      expectSame('renew', renew(world.model, call), results)
      renewed(world.ledger, { call, results, now: world.clock.now() })
      for (const result of results) world.reach(`renew: ${result}${command.commit ? ' (commit)' : ''}`)
      world.note(`renew ${results.join(' ')}`)
    },
  }
}

const REASONS: readonly UnroutedReason[] = ['unknown-flow', 'slot', 'routes-old', 'key-failed', 'schema-failed']

export function unroutedStep(world: World, command: Of<'unrouted'>): Issued {
  const flows = world.flows.map((flow) => flow.name)
  const call: ClaimUnroutedCall = {
    n: command.n,
    lease: LEASE,
    reasons: REASONS,
    flows: command.fewer ? flows.slice(0, 1) : flows,
  }
  return {
    label: `lease ${command.n} unrouted events of ${call.flows.join(', ')}`,
    send: () => world.store.claimUnrouted(call),
    check(reply) {
      const { unrouted } = reply as ClaimUnroutedReply
      world.checkReply(reply as ClaimUnroutedReply)
      const predicted = claimUnrouted(world.model, call)
      expectSame(
        'unrouted',
        predicted.map((entry) => [entry.event, entry.flow, entry.reason, entry.error]),
        unrouted.map((entry, n) => {
          const error = predicted[n]?.error === ANY_ERROR ? ANY_ERROR : entry.error
          return [entry.event.id, entry.flow, entry.reason, error]
        }),
      )
      predicted.forEach((entry, n) => {
        const leased = unrouted[n]
        if (leased === undefined) return
        demand(entry.id === undefined || entry.id === leased.id, 'an unrouted event keeps its id')
        demand(leased.token > world.ledger.lastToken, 'tokens of unrouted events never repeat')
        world.ledger.lastToken = leased.token
        entry.id = leased.id
        entry.token = leased.token
      })
      world.unrouted.push(...unrouted)
      world.reach('unrouted: leased', unrouted.length)
      world.note(`unrouted ${unrouted.length}`)
    },
  }
}

function issuePlace(world: World, label: string, call: PlaceCall): Issued {
  return {
    label,
    send: () => world.store.place(call),
    check(reply) {
      const { results } = reply as PlaceReply
      world.checkReply(reply as PlaceReply)
      expectSame('place', place(world.model, call, results), results)
      placed(world.ledger, { call, results, now: world.clock.now(), unrouted: world.unrouted })
      world.lastPlace = call
      call.items.forEach((item, n) => world.reach(`place: ${item.kind} ${results[n]}`))
      world.note(`place ${results.join(' ')}`)
    },
  }
}

export function placeUnrouted(world: World, command: Of<'place-unrouted'>): Issued | undefined {
  const entry = world.unrouted[world.unrouted.length - 1 - (command.entry % Math.max(1, world.unrouted.length))]
  if (entry === undefined) return undefined
  const flow = world.flows.find((one) => one.name === entry.flow) ?? world.flow(0)
  const key = keyFor(world, entry.event.tenant, command.key)
  const rest = { flow: entry.flow, reason: 'key-failed' as const, error: `still ${entry.id}`, after: 100 }
  return issuePlace(world, `place the unrouted event ${entry.event.id.slice(-3)} in ${flow.name}/k${key}`, {
    routes: world.model.routes,
    items: [
      {
        kind: 'unrouted',
        id: entry.id,
        token: entry.token,
        placements: command.fails ? [] : [placeIn(flow, key, 0)],
        unrouted: command.fails ? [rest] : [],
      },
    ],
  })
}

/** Keys belong to tenants: 0 and 1 to the first, 2 to the second, 3 to none. */
function keyFor(world: World, tenant: string, wish: number): number {
  if (tenant === 'beta') return 2
  if (tenant === '') return 3
  return wish % Math.min(2, world.keys)
}

export function replayStep(world: World, command: Of<'replay'>): Issued | undefined {
  const { events } = world
  if (events.length === 0) return undefined
  const chosen = Array.from({ length: command.n + 1 }, (_, n) => events[(command.event + n) % events.length])
  const items = chosen.flatMap((event) => {
    if (event === undefined || event.placements.length === 0) return []
    const places = event.placements.slice(0, 1)
    const once = command.replay === 3
    return [{ kind: 'replay' as const, replay: `replay-${command.replay}`, event: event.id, placements: places, once }]
  })
  if (items.length === 0) return undefined
  const names = items.map((item) => item.event.slice(-3)).join(', ')
  return issuePlace(world, `replay ${names} as ${command.replay}`, { routes: world.model.routes, items })
}

export function repeatPlace(world: World): Issued | undefined {
  return world.lastPlace && issuePlace(world, 'place again', world.lastPlace)
}

const PERMITS = [3, 5]

export function permitsStep(world: World, command: Of<'permits'>): Issued {
  const max = PERMITS[command.name] ?? 1
  const call: LeasePermitsCall = {
    process: world.process(command.who).name,
    lease: LEASE,
    requests: [{ name: `permit-${command.name}`, want: command.want, max }],
  }
  return {
    label: `${call.process} wants ${command.want} of ${max} permits`,
    send: () => world.store.leasePermits(call),
    check(reply) {
      world.checkReply(reply as LeasePermitsReply)
      const results = (reply as LeasePermitsReply).granted
      granted(world.ledger, { call, granted: results, now: world.clock.now() })
      for (const n of results) world.reach(n < command.want ? 'permits: fewer than wanted' : 'permits: all')
      world.note(`permits ${results.join(' ')}`)
    },
  }
}

export function maintainStep(world: World, command: Of<'maintain'>): Issued {
  const age = command.keepNothing ? 0 : NEVER
  const policy = { events: { '': age }, runs: { '': age }, deadLetters: NEVER, bytes: NEVER, lanesPerTenant: {} }
  return {
    label: `maintenance, ${command.keepNothing ? 'nothing finished is kept' : 'everything is kept'}`,
    send: () => world.store.maintain({ budget: 1000, policy }),
    check(reply) {
      world.checkReply(reply as MaintainReply)
      world.reach('maintain: events', (reply as MaintainReply).counts.events)
      maintain(world.model, command.keepNothing)
      world.recordsWereRemoved ||= command.keepNothing
    },
  }
}
