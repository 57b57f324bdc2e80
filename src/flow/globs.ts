// `createMatcher` compiles globs over `source/type`, which select the events of a flow or an endpoint. A glob without a slash matches the type.
import { ENGINE_SOURCE } from '../model/event.ts'
import { invalidOption } from '../validate/options.ts'

interface MatchedEvent {
  readonly source: string
  readonly type: string
  /** Whether a source received the event; false if the app published it. */
  readonly received?: boolean
}

/**
 * Whether a glob without a slash matches the events of every source, or only the events that the app published and the news about
 * endpoints. News about alerts and dead letters is for operators, so a subscriber gets it only by a glob that names the source.
 */
export type SlashlessScope = 'every-source' | 'published'

/** `*` matches any characters except a slash; `**` or more stars match any characters. */
export function createMatcher(
  globs: readonly string[],
  option: string,
  unnamed: SlashlessScope = 'every-source',
): (event: MatchedEvent) => boolean {
  if (globs.length === 0) throw invalidOption(`${option} must not be empty; use a type, or '**' for all events.`)
  const patterns = globs.map((glob) => {
    if (typeof glob !== 'string' || glob === '')
      throw invalidOption(`${option} must contain globs like 'shop/order.*'; got ${JSON.stringify(glob)}.`)
    const named = glob.includes('/')
    const inbound = named || unnamed === 'every-source'
    return { whole: named || glob === '**', inbound, matches: globMatcher(glob) }
  })
  return ({ source, type, received = false }) =>
    patterns.some(
      ({ whole, inbound, matches }) =>
        (inbound || (!received && !isOperatorNews({ source, type }))) && matches(whole ? `${source}/${type}` : type),
    )
}

/** `isOperatorNews` returns whether an event is news of the engine about alerts or dead letters. */
export function isOperatorNews({ source, type }: Pick<MatchedEvent, 'source' | 'type'>): boolean {
  return source === ENGINE_SOURCE && !type.startsWith('endpoint.')
}

/** `MatchCounter` counts the characters that a match compares, including repeated comparisons. */
interface MatchCounter {
  steps: number
}

type TextMatcher = (text: string, counter?: MatchCounter) => boolean

/** `Star` is a star and the text behind it. */
interface Star {
  /** Whether the star matches slashes. */
  readonly isAny: boolean
  readonly piece: string
  /** The failure table of the text: for each matched length, how much stays matched if the next character differs. */
  readonly fallback: readonly number[]
}

const SLASH = 47

/** Strangers choose globs and names, so compiling is linear in the glob, and matching linear in text × stars. */
export function globMatcher(glob: string): TextMatcher {
  const [before = '', star, after = '', ...more] = glob.split(/(\*+)/)
  if (star === undefined) return (text) => text === glob
  if (more.length === 0)
    return (text) => hasPrefixAndSuffix(text, before, after) && (star !== '*' || !hasSlashBetween(text, before, after))
  const stars: Star[] = []
  for (let at = 0, parts = [star, after, ...more]; at < parts.length; at += 2) {
    const piece = parts[at + 1] ?? ''
    stars.push({ isAny: parts[at] !== '*', piece, fallback: computeFallback(piece) })
  }
  return (text, counter) => matchesStars(text, before, stars, counter)
}

function hasPrefixAndSuffix(text: string, before: string, after: string): boolean {
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
}

function hasSlashBetween(text: string, before: string, after: string): boolean {
  const slash = text.indexOf('/', before.length)
  return slash !== -1 && slash < text.length - after.length
}

/** Builds the failure table of the Knuth-Morris-Pratt search. */
function computeFallback(part: string): readonly number[] {
  const fallback = [0]
  for (let at = 1, matched = 0; at < part.length; at++) {
    while (matched > 0 && part[at] !== part[matched]) matched = fallback[matched - 1] ?? 0
    if (part[at] === part[matched]) matched++
    fallback.push(matched)
  }
  return fallback
}

/** Buffers for where a star and the text behind it may end, as long as the longest text so far. */
const scratch = { open: new Uint8Array(0), ends: new Uint8Array(0), next: new Uint8Array(0) }

/** Makes one pass over the text per star and tracks all positions where the preceding part may end. */
function matchesStars(
  text: string,
  before: string,
  stars: readonly Star[],
  counter: MatchCounter | undefined,
): boolean {
  const last = stars.at(-1)?.piece ?? ''
  if (!hasPrefixAndSuffix(text, before, last)) return false
  const { length } = text
  if (scratch.open.length <= length) {
    for (const name of ['open', 'ends', 'next'] as const) scratch[name] = new Uint8Array(length + 1)
  }
  const { open } = scratch
  let { ends, next } = scratch
  ends.fill(0, 0, length + 1)
  ends[before.length] = 1
  let steps = 0
  for (const { isAny, piece, fallback } of stars) {
    next.fill(0, 0, length + 1)
    let isOpen = 0
    let matched = 0
    for (let at = 0; at <= length; at++) {
      steps++
      if (ends[at] === 1) isOpen = 1
      open[at] = isOpen
      if (piece === '') next[at] = isOpen
      if (at === length) break
      const char = text.charCodeAt(at)
      while (matched > 0 && piece.charCodeAt(matched) !== char) {
        steps++
        matched = fallback[matched - 1] ?? 0
      }
      if (piece.charCodeAt(matched) === char) matched++
      if (matched === piece.length && matched > 0) {
        if (open[at + 1 - matched] === 1) next[at + 1] = 1
        matched = fallback[matched - 1] ?? 0
      }
      if (char === SLASH && !isAny) isOpen = 0
    }
    ;[ends, next] = [next, ends]
  }
  if (counter !== undefined) counter.steps += steps
  return ends[length] === 1
}
