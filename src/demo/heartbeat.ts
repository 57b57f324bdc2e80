// Keeps a run's lease and the process's permit while the run goes on, and tells the run when it is no longer its own.
import type { Clock, Lease, Millis, Store } from '../index.ts'
import { CONCURRENCY, FLOW, LEASE } from './flow.ts'
import { sleep } from './sleep.ts'

export interface HeartParts {
  readonly store: Store
  readonly clock: Clock
  readonly process: string
}

const BEAT: Millis = LEASE / 3
/** How long before its end a lease that could not be renewed is given up. */
const MARGIN: Millis = LEASE / 6

export interface Heartbeat {
  /** Aborted when the lease is lost, or about to be. */
  readonly lost: AbortSignal
  end(): Promise<void>
}

/** How many runs this process may have now: the permits are in the store, for all processes together (L20). */
export async function permits(parts: HeartParts, want: number): Promise<number> {
  const { granted } = await parts.store.permits({
    process: parts.process,
    lease: LEASE,
    wants: [{ name: FLOW, want, max: CONCURRENCY }],
  })
  return granted[0] ?? 0
}

/** `sent`: when the claim was sent, on the monotonic clock. */
export function heartbeat(parts: HeartParts, run: Lease, sent: Millis): Heartbeat {
  const { store, clock } = parts
  const lost = new AbortController()
  const ended = new AbortController()
  const giveUpAt = (from: Millis): (() => void) =>
    clock.after(from + LEASE - MARGIN - clock.monotonic(), () => lost.abort())
  let disarm = giveUpAt(sent)

  const beats = async (): Promise<void> => {
    while (await sleep(clock, BEAT, ended.signal)) {
      const asked = clock.monotonic()
      const renewed = store.renew({ lease: LEASE, runs: [{ lane: run.lane, token: run.token, commit: false }] })
      const [{ results }, granted] = await Promise.all([renewed, permits(parts, CONCURRENCY)])
      if (results[0] !== 'ok' || granted === 0) return lost.abort()
      disarm()
      disarm = giveUpAt(asked)
    }
  }

  // A store that fails here fails the settlement too, which is where it is reported.
  const beating = beats().catch(() => lost.abort())
  return {
    lost: lost.signal,
    async end() {
      ended.abort()
      await beating
      disarm()
    },
  }
}
