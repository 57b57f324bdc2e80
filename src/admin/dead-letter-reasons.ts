// Groups dead letters by why they died: reasons that differ only in numbers, quoted texts and ids are one group.
import type { Clock, Millis } from '../clock.ts'
import type { DeadLetter } from './dead-letters.ts'
import type { Page } from './pages.ts'

export interface DeadLetterGroup {
  readonly flow: string
  readonly kind: DeadLetter['kind']
  /** The reason of the newest one. */
  readonly reason: string
  /** The filter `reason` that finds all of the group; it may find others too. */
  readonly pattern: string
  readonly count: number
  readonly lanes: number
  /** How many block their lane. */
  readonly blocking: number
  readonly first: Millis
  readonly last: Millis
  /** How many died in each of the last 24 hours; the last one is the current hour. */
  readonly hours: readonly number[]
}

export interface DeadLetterReasons {
  readonly now: Millis
  readonly total: number
  /** False if there are more than were read: the groups are those of the newest. */
  readonly exact: boolean
  /** The largest first, at most 50. */
  readonly groups: readonly DeadLetterGroup[]
}

/** `DeadLetterScan` is a bounded part of the matching dead letters, newest first. */
export interface DeadLetterScan {
  readonly deadLetters: readonly DeadLetter[]
  readonly isComplete: boolean
}

const MAX_LETTERS = 5_000
const MAX_MS: Millis = 40
const PAGE = 500
const MAX_GROUPS = 50
const HOUR: Millis = 3_600_000
const HOURS = 24

export async function scanDeadLetters(
  clock: Clock,
  list: (cursor: string, n: number) => Promise<Page<DeadLetter>>,
): Promise<DeadLetterScan> {
  const startedAt = clock.monotonic()
  const deadLetters: DeadLetter[] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined && deadLetters.length < MAX_LETTERS && clock.monotonic() - startedAt <= MAX_MS) {
    const page: Page<DeadLetter> = await list(cursor, PAGE)
    deadLetters.push(...page.items)
    cursor = page.next
  }
  return { deadLetters, isComplete: cursor === undefined }
}

export function groupDeadLetters(deadLetters: readonly DeadLetter[], now: Millis): readonly DeadLetterGroup[] {
  const groups = Map.groupBy(deadLetters, (deadLetter) =>
    JSON.stringify([deadLetter.kind, deadLetter.flow, maskReason(textOf(deadLetter)).join('#')]),
  )
  return [...groups.values()]
    .toSorted((one, other) => other.length - one.length)
    .slice(0, MAX_GROUPS)
    .map((group) => toGroup(group, now))
}

function toGroup(deadLetters: readonly DeadLetter[], now: Millis): DeadLetterGroup {
  const newest = deadLetters.reduce((one, other) => (other.at > one.at ? other : one))
  const hours = Array.from({ length: HOURS }, () => 0)
  for (const { at } of deadLetters) {
    const hour = HOURS - 1 - Math.floor((now - at) / HOUR)
    if (hour >= 0 && hour < HOURS) hours[hour] = (hours[hour] ?? 0) + 1
  }
  const reason = textOf(newest)
  return {
    flow: newest.flow,
    kind: newest.kind,
    reason,
    pattern: findPattern(reason),
    count: deadLetters.length,
    lanes: countLanes(deadLetters),
    blocking: deadLetters.filter(isBlocking).length,
    first: deadLetters.reduce((first, { at }) => Math.min(first, at), newest.at),
    last: newest.at,
    hours,
  }
}

/** Returns what people read as the reason of a dead letter. */
function textOf(deadLetter: DeadLetter): string {
  return deadLetter.kind === 'unrouted' && deadLetter.error !== '' ? deadLetter.error : deadLetter.reason
}

/** `matchesReason` returns whether the reason contains the text, which is in lower case. */
export function matchesReason(deadLetter: DeadLetter, text: string): boolean {
  return `${deadLetter.reason}\n${textOf(deadLetter)}`.toLowerCase().includes(text)
}

export function countLanes(deadLetters: readonly DeadLetter[]): number {
  return new Set(deadLetters.flatMap((deadLetter) => (deadLetter.kind === 'run' ? deadLetter.lane : []))).size
}

export function isBlocking(deadLetter: DeadLetter): boolean {
  return deadLetter.kind === 'run' && deadLetter.blocks
}

/** Quoted texts, long ids, and numbers. Each pattern runs in linear time. */
const VARIABLE = /"[^"\n]*"|'[^'\n]*'|\b[\w-]*\d[\w-]{11,}\b|\b[\da-f]{8,}\b|\d+(?:[.:]\d+)*/gi
const MAX_REASON = 500

/** Returns the parts of a reason between what varies. */
function maskReason(reason: string): readonly string[] {
  return reason.slice(0, MAX_REASON).split(VARIABLE)
}

function findPattern(reason: string): string {
  const longest = maskReason(reason).reduce((one, other) => (other.trim().length > one.trim().length ? other : one))
  return longest.trim() === '' ? reason.slice(0, MAX_REASON) : longest.trim()
}
