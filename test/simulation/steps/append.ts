// Appends: new events, the same events again, and repeated calls after a lost reply (L2, L10, L18).
import { NEVER } from '../../../src/clock.ts'
import type { AppendCall, AppendResult, AppendReply, EventToStore } from '../../../src/store/contract/index.ts'
import type { Command } from '../commands.ts'
import { appended } from '../ledger/append.ts'
import { append } from '../model/place.ts'
import { expectSame } from '../violation.ts'
import type { Issued, World } from '../world.ts'

type Of<K extends Command['kind']> = Extract<Command, { readonly kind: K }>

function issueAppend(world: World, label: string, call: AppendCall): Issued {
  return {
    label: `${label} ${call.events.map((event) => `${event.id.slice(-3)}→${lanesOf(event)}`).join(', ')}`,
    send: () => world.store.append(call),
    check(reply) {
      const { results } = reply as AppendReply
      world.checkReply(reply as AppendReply)
      const predicted = append(world.model, call)
      expectSame('append answers', predicted, results)
      appended(world.ledger, { call, results, now: world.clock.now() })
      call.events.forEach((event, n) => remember(world, event, results[n]))
      world.lastAppend = call
      world.note(`append ${results.map((result) => result.kind).join(' ')}`)
    },
  }
}

function lanesOf(event: EventToStore): string {
  const lanes = event.placements.map((place) =>
    `${place.flow}/${place.key}(${place.quiet}, ${place.max})`.replaceAll(String(NEVER), '∞'),
  )
  return [...lanes, ...event.unrouted.map((entry) => `unrouted ${entry.flow}`)].join('+')
}

function remember(world: World, event: EventToStore, result: AppendResult | undefined): void {
  if (result === undefined) return
  world.reach(`append: ${result.kind}`)
  if (result.kind === 'stored') world.events.push(event)
  if (result.kind === 'stored' && event.unrouted.length > 0) world.reach('append: unrouted')
}

export function appendStep(world: World, command: Of<'append'>): Issued {
  const events = command.events.map((pick) => world.newEvent(pick))
  const routes = world.model.routes - (command.oldRoutes ? 1 : 0)
  return issueAppend(world, 'append', { routes, events })
}

/** The same identity under a new event id, once or twice in one call, with the same bytes or with others. */
export function duplicateStep(world: World, command: Of<'duplicate'>): Issued | undefined {
  const original = world.events[command.event % world.events.length]
  if (original === undefined) return undefined
  const again = (body: Uint8Array): EventToStore => {
    const { id } = world.bareEvent(original.tenant, '')
    return { ...original, id, body }
  }
  const body = command.otherBody ? new TextEncoder().encode('other') : original.body
  const events = command.twice ? [again(body), again(original.body)] : [again(body)]
  return issueAppend(world, 'append the same', { routes: world.model.routes, events })
}

export function repeatAppend(world: World): Issued | undefined {
  const call = world.lastAppend
  // No caller waits for a reply until the event is beyond its retention.
  const tooLate = call?.events.some((event) => world.model.events.get(event.id)?.gone !== 'no')
  return call === undefined || tooLate === true ? undefined : issueAppend(world, 'append again', call)
}
