// Events by age and by bytes (L23), in two steps where an identity must stay known for longer (L10): first the bytes, then the row.
import { NEVER, type Millis } from '../../clock.ts'
import type { RetentionPolicy } from '../contract/index.ts'
import { before, lookedAt, lookOn, oldIn, UNSEEN, type OldRows } from './old-rows.ts'
import { needs, wipe } from './purge.ts'
import type { EventRow } from './tables.ts'
import type { Work } from './work.ts'

/** Where the looks at old events stand. Those that were left are followed by a second look, behind the first. */
export interface OldEvents extends OldRows {
  /** The shortest time for which the identity of one that was left is known. */
  readonly known: Millis
  /** Up to here the second look has come. */
  readonly forgotten: number
  /** When the first behind that arrived; 0: that is not known. */
  readonly ahead: Millis
  /** The look that is under way is for bytes, which the oldest give first, and so many it has freed. */
  readonly forBytes: { readonly freed: number } | undefined
  /** When such a look last freed none. */
  readonly inVain: Millis
}

export const UNSEEN_EVENTS: OldEvents = {
  ...UNSEEN,
  known: NEVER,
  forgotten: 0,
  ahead: 0,
  forBytes: undefined,
  inVain: 0,
}

/** After a look for bytes that freed none. */
const AFTER_NONE: Millis = 60_000

export interface ExpiredEvents {
  readonly gone: number
  readonly more: boolean
  readonly after: OldEvents
}

export function expireEvents(work: Work, policy: RetentionPolicy, looked: OldEvents, n: number): ExpiredEvents {
  const byAge = expireOld(work, policy, looked, n)
  // A look at all of them has also found those whose identity has ended.
  if (byAge.after.isWhole) return byAge
  const known = forgetKnown(work, policy, byAge.after, n)
  return { gone: byAge.gone + known.gone, more: byAge.more || known.more, after: known.after }
}

function expireOld(work: Work, policy: RetentionPolicy, looked: OldEvents, n: number): ExpiredEvents {
  const over = policy.bytes < NEVER ? work.tables.records.stats(work.now).bytes - policy.bytes : 0
  const from = lookFrom(looked, work.now, over)
  let above = from.forBytes === undefined ? 0 : over
  const youngest = before(work.now, Math.min(NEVER, ...Object.values(policy.events)))
  const arrivals = work.tables.events.arrivals(from.at, n)
  const count = countOld(arrivals, work.now, youngest)
  const lastOld = arrivals[count - 1]?.seq ?? 0
  const wanted = above > 0 ? n : count
  const page = wanted === 0 ? [] : work.tables.events.oldest(from.at, wanted)
  let { known } = from
  let [gone, last, left, freed] = [0, from.at, 0, from.forBytes?.freed ?? 0]
  const reached = (isThrough: boolean): ExpiredEvents => {
    const forBytes = from.forBytes && !isThrough ? { freed } : undefined
    const inVain = from.forBytes && isThrough && freed === 0 ? work.now : from.inVain
    const after = lookedAt({ ...from, known, forBytes, inVain }, work.now, { last, left, isThrough })
    return { gone, more: after.at > 0, after }
  }
  if (page.length === 0) return reached(true)
  const expire = expiring(work)
  for (const event of page) {
    if (event.seq > lastOld && above <= 0) return reached(count < n)
    last = event.seq
    const became = isOld(event, policy, work.now) || above > 0 ? expire(event) : 'kept'
    if (became === 'emptied' || became === 'known') known = Math.min(known, event.dedupeUntil - event.arrived)
    if (became !== 'removed') left++
    if (became === 'kept' || became === 'known') continue
    const bytes = event.body.length + event.request.length
    above -= bytes
    freed += bytes
    gone++
  }
  return reached((wanted === n ? arrivals.length : count) < n)
}

/** How many are to be looked at, by their times alone: bodies are read only where something is old, and mostly nothing is. */
function countOld(arrivals: readonly Pick<EventRow, 'arrived'>[], now: Millis, youngest: Millis): number {
  return oldIn(arrivals, now, youngest, ({ arrived }) => arrived)
}

/** For bytes it begins at the first row, also where another look is under way: the oldest go first. */
function lookFrom(looked: OldEvents, now: Millis, above: number): OldEvents {
  if (looked.forBytes !== undefined && looked.at > 0) return looked
  const forBytes = above > 0 && Math.abs(now - looked.inVain) >= AFTER_NONE ? { freed: 0 } : undefined
  const begun = lookOn(forBytes === undefined ? looked : { ...looked, at: 0 }, now, forBytes !== undefined)
  return begun.isWhole && begun.at === 0
    ? { ...begun, known: NEVER, forgotten: 0, ahead: 0, forBytes }
    : { ...begun, forBytes }
}

function isOld(event: EventRow, policy: RetentionPolicy, now: Millis): boolean {
  return event.arrived <= before(now, policy.events[event.source] ?? policy.events[''] ?? NEVER)
}

/** A finished event goes; while its identity must stay known, only its bytes do. */
function expiring(work: Work): (event: EventRow) => 'removed' | 'emptied' | 'known' | 'kept' {
  const isNeeded = needs(work)
  return (event) => {
    if (isNeeded(event)) return 'kept'
    if (event.dedupeUntil <= work.now) {
      work.tables.events.remove(event.seq)
      return 'removed'
    }
    if (event.purgedHash !== '') return 'known'
    wipe(work, event)
    return 'emptied'
  }
}

/** Identities that are known for longer than the shortest are left to the next whole look. */
function forgetKnown(work: Work, policy: RetentionPolicy, looked: OldEvents, n: number): ExpiredEvents {
  const youngest = before(work.now, looked.known)
  if (looked.ahead > youngest || looked.known >= NEVER) return { gone: 0, more: false, after: looked }
  const arrivals = work.tables.events.arrivals(looked.forgotten, n).filter(({ seq }) => seq <= looked.upTo)
  const count = countOld(arrivals, work.now, youngest)
  const page = count === 0 ? [] : work.tables.events.oldest(looked.forgotten, count)
  const seen = page.filter((event) => event.seq <= looked.upTo)
  const expire = expiring(work)
  const became = seen.map((event) => (isOld(event, policy, work.now) ? expire(event) : 'kept'))
  const removed = became.filter((kind) => kind === 'removed').length
  const emptied = became.filter((kind) => kind === 'emptied').length
  const after = {
    ...looked,
    left: looked.left - removed,
    forgotten: seen.at(-1)?.seq ?? looked.forgotten,
    ahead: arrivals[count]?.arrived ?? 0,
  }
  return { gone: removed + emptied, more: seen.length === n, after }
}
