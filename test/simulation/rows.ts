// Expands the compound commands of a history into plain commands, each of which is checked like any other.
import type { ClaimPick, Command, EventPick } from './commands.ts'
import { LEASE, TICK } from './settings.ts'

type Row = Extract<Command, { readonly kind: 'row' }>

function claimOf({ flow }: Row): ClaimPick {
  return { flow, slots: 1, failing: 1, suspects: 1 }
}

function append({ flow, key }: Row): Command {
  const event: EventPick = { flow, key, window: 0, size: 0, also: 0, unrouted: 0, forgetSoon: false }
  return { kind: 'append', events: [event], oldRoutes: false }
}

function claim(row: Row): Command {
  return { kind: 'turn', who: 0, settles: [], claims: [claimOf(row)], smallBudget: false, oldRoutes: false }
}

function oneOf(row: Row): readonly Command[] {
  switch (row.what) {
    case 'poison':
      return [claim(row), { kind: 'crash', who: 0 }, { kind: 'advance', by: LEASE }]
    case 'busy':
      return [append(row), { kind: 'work', who: 0, outcome: 'done', claim: claimOf(row) }]
    case 'interrupt':
      return [
        append(row),
        { kind: 'advance', by: 2 * TICK },
        claim(row),
        append(row),
        { kind: 'work', who: 0, outcome: 'cancelled', claim: { ...claimOf(row), slots: 0 } },
      ]
  }
}

/** The plain commands of a command. */
export function expand(command: Command): readonly Command[] {
  if (command.kind !== 'row') return [command]
  return Array.from({ length: command.times }, () => oneOf(command)).flat()
}
