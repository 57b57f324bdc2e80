// The loop that claims the first lane in line, runs it, and settles it in the same commit as the next claim.
import type { Clock, Lease, Millis, Store, TurnCall, TurnReply } from '../index.ts'
import type { Chance } from './chance.ts'
import { Ears } from './ears.ts'
import { ending, type Ending } from './ending.ts'
import { CONCURRENCY, FLOW, LEASE, WINDOW } from './flow.ts'
import { heartbeat, permits } from './heartbeat.ts'
import type { Tell } from './life.ts'
import { rankUser } from './rank-user.ts'

export interface WorkerParts {
  readonly store: Store
  readonly clock: Clock
  readonly luck: Chance
  /** A name that no other process on this store has. */
  readonly process: string
  readonly tell: Tell
}

/** Hints may be lost, so that nobody sleeps longer than this. */
const POLL_FLOOR: Millis = 1_000
const BODIES_MAX = 1_000_000

export async function work(parts: WorkerParts, stop: AbortSignal): Promise<void> {
  const turns = new Turns(parts)
  const ears = new Ears(parts.store)
  try {
    while (!stop.aborted) {
      ears.forget()
      const slots = await permits(parts, CONCURRENCY)
      const sent = parts.clock.monotonic()
      const reply = await turns.take(slots)
      const run = reply.claimed[0]
      if (run === undefined) await ears.rest(parts.clock, restAfter(reply), stop)
      else turns.ended = await runOnce(parts, run, { sent, at: reply.now }, stop)
    }
    // What the last run came to is stored before the process leaves; nothing is claimed with it.
    await turns.take(0)
    await permits(parts, 0)
  } finally {
    ears.close()
  }
}

/** Until the next deadline, as the store tells the time. */
function restAfter(reply: TurnReply): Millis {
  const due = reply.heads[0]?.due ?? Infinity
  return Math.min(POLL_FLOOR, Math.max(1, due - reply.now))
}

class Turns {
  readonly #parts: WorkerParts
  #request = 0
  /** A run whose end is not stored yet. */
  ended: Ending | undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  /** Settles what has ended and claims up to so many runs. */
  async take(slots: number): Promise<TurnReply> {
    const { store, process, tell } = this.#parts
    const { ended } = this
    const settle = ended === undefined ? [] : [ended.settle]
    const request = ++this.#request
    // Nothing is published, so that it does not matter by which routes that would be.
    const reply = await store.turn({ process, request, routes: 0, settle, claim: [claim(slots)], budget: BODIES_MAX })
    this.ended = undefined
    if (ended !== undefined) tell(ended.life(reply.settled[0] ?? 'lost', reply.now))
    return reply
  }
}

function claim(slots: number): TurnCall['claim'][number] {
  return {
    flow: FLOW,
    slots,
    failing: slots,
    suspects: slots,
    perGroup: undefined,
    block: false,
    maxEvents: WINDOW.maxEvents,
    maxBytes: WINDOW.maxBytes,
    lease: LEASE,
    take: 'all',
  }
}

interface Claimed {
  /** When the claim was sent, on the monotonic clock. */
  readonly sent: Millis
  /** When it was made, on the store's. */
  readonly at: Millis
}

async function runOnce(parts: WorkerParts, run: Lease, { sent, at }: Claimed, stop: AbortSignal): Promise<Ending> {
  const { clock, luck, tell } = parts
  const user = run.key
  tell({ kind: 'claimed', at, user, due: run.due, attempt: run.tries + 1, events: run.events })
  const heart = heartbeat(parts, run, sent)
  const began = clock.monotonic()
  const passed = (): Millis => Math.round(clock.monotonic() - began)
  try {
    const attempted = await rankUser(parts, run, AbortSignal.any([stop, heart.lost]), (handed, call, of) =>
      tell({ kind: 'called', at: at + passed(), user, handed, call, of }),
    )
    return ending(run, attempted, { began: at, ms: passed(), chance: luck.unit() })
  } finally {
    await heart.end()
  }
}
