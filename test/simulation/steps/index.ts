// Turns a command into the call that it means in the current state; undefined if it means nothing there.
import type { Command } from '../commands.ts'
import { LEASE } from '../settings.ts'
import type { Issued, World } from '../world.ts'
import { appendStep, duplicateStep, repeatAppend } from './append.ts'
import {
  permitsStep,
  placeUnrouted,
  renewStep,
  repeatPlace,
  replayStep,
  unroutedStep,
  maintainStep,
} from './maintenance.ts'
import { inspect, purgeStep, raiseRoutes, steerDead, steerFlow, steerLane, steerUnrouted } from './operators.ts'
import { repeatTurn, turnStep, workStep } from './settle-and-claim.ts'

type Of<K extends Command['kind']> = Extract<Command, { readonly kind: K }>

function moment(label: string, act: () => void | Promise<void>): Issued {
  return { label, send: async () => act(), check: () => undefined }
}

function repeat(world: World, command: Of<'repeat'>): Issued | undefined {
  switch (command.what) {
    case 'append':
      return repeatAppend(world)
    case 'place':
      return repeatPlace(world)
    case 'turn':
      return repeatTurn(world, command.who, false)
    case 'older-turn':
      return repeatTurn(world, command.who, true)
  }
}

function crash(world: World, who: number): Issued {
  return moment(`process ${who} crashes`, () => {
    const process = world.process(who)
    world.spent.push(...process.held)
    process.held = []
    process.incarnation += 1
    process.name = `process-${who}.${process.incarnation}`
    process.request = 0
    process.lastTurn = undefined
    world.reach('crash')
  })
}

function reopen(world: World): Issued | undefined {
  const again = world.reopen
  if (again === undefined) return undefined
  return moment('the store crashes and is opened again', async () => {
    world.store = await again()
    world.reach('reopen')
  })
}

export async function issue(world: World, command: Command): Promise<Issued | undefined> {
  switch (command.kind) {
    case 'append':
      return appendStep(world, command)
    case 'duplicate':
      return duplicateStep(world, command)
    case 'repeat':
      return repeat(world, command)
    case 'advance':
      return moment(`${command.by} ms pass`, () => world.clock.advance(command.by))
    case 'stall':
      return moment('everybody stalls past the lease', () => world.clock.advance(LEASE))
    case 'jump':
      return moment(`the clock is set by ${command.by}`, () => {
        world.clock.jump(command.by)
        world.reach(command.by < 0 ? 'clock: back' : 'clock: forward')
      })
    case 'turn':
      return turnStep(world, command)
    case 'work':
      return workStep(world, command)
    case 'renew':
      return renewStep(world, command)
    case 'crash':
      return crash(world, command.who)
    case 'steer-lane':
      return steerLane(world, command)
    case 'steer-dead':
      return steerDead(world, command)
    case 'steer-unrouted':
      return steerUnrouted(world, command)
    case 'steer-flow':
      return steerFlow(world, command)
    case 'purge':
      return purgeStep(world, command)
    case 'unrouted':
      return unroutedStep(world, command)
    case 'place-unrouted':
      return placeUnrouted(world, command)
    case 'replay':
      return replayStep(world, command)
    case 'raise-routes':
      return raiseRoutes(world)
    case 'permits':
      return permitsStep(world, command)
    case 'maintain':
      return maintainStep(world, command)
    case 'inspect':
      return inspect(world)
    case 'reopen':
      return reopen(world)
    case 'both':
      return both(world, command)
    case 'row':
      // Compound commands are expanded before; inside a pair they mean nothing.
      return undefined
  }
}

/** Two calls at once, neither of which knows the other's reply. Embedded stores run them in the order of the calls. */
async function both(world: World, command: Of<'both'>): Promise<Issued | undefined> {
  const first = await issue(world, command.first)
  const second = await issue(world, command.second)
  if (first === undefined || second === undefined) return first ?? second
  if (!isCall(command.first) || !isCall(command.second)) return first
  return {
    label: `at once: ${first.label} AND ${second.label}`,
    send: () => Promise.all([first.send(), second.send()]),
    async check(replies) {
      const [one, two] = replies as readonly unknown[]
      await first.check(one)
      await second.check(two)
      world.reach('two calls at once')
    },
  }
}

const NOT_ONE_CALL = new Set<Command['kind']>([
  'advance',
  'jump',
  'stall',
  'crash',
  'reopen',
  'both',
  'row',
  'inspect',
  'purge',
  'raise-routes',
])

function isCall(command: Command): boolean {
  return !NOT_ONE_CALL.has(command.kind)
}
