// What the other side, or a person, says about a limit is told to the store, and then to whoever listens (M3).
import type { Clock, Millis } from '../clock.ts'
import type { LimitNumbers } from '../model/limit.ts'
import type { AnyListener } from '../observe/events.ts'
import type { RegulateCall, RegulateReply, Store } from '../store/contract/index.ts'
import { invalid } from './options.ts'
import type { ToldPauses } from './told-pauses.ts'

export interface RegulateParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly emit: AnyListener
  readonly pauses: ToldPauses
}

/** What the headers of the other side say. */
export interface Seen {
  /** How many calls of its window are used. */
  used: number
  /** How many it allows; `rate`, unless said. */
  of?: number
  /** When its window begins anew: a date, or milliseconds since 1970. */
  resetsAt: Date | number
}

/** Any number of milliseconds before this is one of seconds that somebody forgot to multiply. */
const EARLIEST: Millis = Date.UTC(2000, 0, 1)

export async function pauseLimit(parts: RegulateParts, name: string, duration: Millis, slow: boolean): Promise<void> {
  const { pausedFor } = await regulate(parts, { name, act: { kind: 'pause', for: duration, slow } })
  parts.pauses.paused(name, pausedFor)
  if (slow) parts.emit('limit.slowed', { limit: name })
}

export async function resumeLimit(parts: RegulateParts, name: string): Promise<void> {
  await regulate(parts, { name, act: { kind: 'resume' } })
  parts.pauses.resumed(name)
}

export async function observeLimit(
  parts: RegulateParts,
  limit: LimitNumbers & { readonly name: string; readonly title: string },
  seen: Seen,
): Promise<void> {
  const { name, title, ...numbers } = limit
  const resetsIn = resetsAtOf(seen, title) - parts.clock.now()
  // That window is over: what was used in it says nothing about the next.
  if (resetsIn <= 0) return
  const used = usedOf(seen, numbers.rate, title)
  const { pausedFor } = await regulate(parts, { name, act: { kind: 'observe', numbers, used, resetsIn } })
  if (used >= numbers.rate) parts.pauses.paused(name, pausedFor)
}

/** What counts is how many the other side will still take: it may allow more, or fewer, than our rate. */
function usedOf({ used, of: allowed }: Seen, rate: number, title: string): number {
  for (const [option, value] of Object.entries({ used, of: allowed ?? rate })) {
    if (!Number.isFinite(value) || value < 0) {
      throw invalid(`${title}.observe: ${option} is ${String(value)}; it is a number of calls.`)
    }
  }
  return Math.max(0, rate - Math.max(0, (allowed ?? rate) - used))
}

function resetsAtOf({ resetsAt }: Seen, title: string): Millis {
  const at = Number(resetsAt)
  if (at >= EARLIEST && Number.isFinite(at)) return at
  throw invalid(
    `${title}.observe: resetsAt is ${String(resetsAt)}; it is a Date, or milliseconds (not seconds) since 1970.`,
  )
}

async function regulate(parts: RegulateParts, call: RegulateCall): Promise<RegulateReply> {
  const store = await parts.store()
  return store.regulate(call)
}
