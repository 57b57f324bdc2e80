// Which events a flow is for: globs over `source/type`; one without a slash is over the type alone.
import { SluiceError } from '../errors.ts'

interface Named {
  readonly source: string
  readonly type: string
}

/** `*` is any run of characters but a slash, `**`, or more of them, of any at all. */
export function matcher(globs: readonly string[], option: string): (event: Named) => boolean {
  if (globs.length === 0) throw new SluiceError('CONFIG_INVALID', `${option} is empty; name a type, or '**' for all.`)
  const patterns = globs.map((glob) => {
    if (typeof glob !== 'string' || glob === '') {
      throw new SluiceError(
        'CONFIG_INVALID',
        `${option} has ${JSON.stringify(glob)}; a glob is text like 'shop/order.*'.`,
      )
    }
    return { whole: glob.includes('/') || glob === '**', matches: matchesOf(glob) }
  })
  return ({ source, type }) => patterns.some(({ whole, matches }) => matches(whole ? `${source}/${type}` : type))
}

type Matches = (text: string) => boolean

const ANY = -1
const ANY_BUT_SLASH = -2
const SLASH = 47

/** Of strangers too, over names that strangers choose: whatever both are, it takes no longer than the one times the other. */
function matchesOf(glob: string): Matches {
  const [before = '', star, after = '', ...more] = glob.split(/(\*+)/)
  if (star === undefined) return (text) => text === glob
  if (more.length === 0)
    return (text) => isAround(text, before, after) && (star !== '*' || !isSlashIn(text, before, after))
  const steps = glob.match(/\*+|[^*]/gs) ?? []
  return passes(steps.map((step) => (step === '*' ? ANY_BUT_SLASH : step.startsWith('*') ? ANY : step.charCodeAt(0))))
}

function isAround(text: string, before: string, after: string): boolean {
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
}

function isSlashIn(text: string, before: string, after: string): boolean {
  const slash = text.indexOf('/', before.length)
  return slash !== -1 && slash < text.length - after.length
}

/** One way through the text, with all the steps of the glob that may be reached: nothing is ever tried again. */
function passes(steps: readonly number[]): Matches {
  const reach = (reached: Uint8Array, from: number): void => {
    reached[from] = 1
    // A star may be for nothing. No two of them are neighbours.
    if ((steps[from] ?? 0) < 0) reached[from + 1] = 1
  }
  let reached = new Uint8Array(steps.length + 1)
  let next = new Uint8Array(steps.length + 1)
  return (text) => {
    reached.fill(0)
    reach(reached, 0)
    for (let at = 0; at < text.length; at++) {
      const char = text.charCodeAt(at)
      next.fill(0)
      for (let n = 0; n < steps.length; n++) {
        if (reached[n] === 0) continue
        const step = steps[n]
        if (step === char) reach(next, n + 1)
        else if (step === ANY || (step === ANY_BUT_SLASH && char !== SLASH)) reach(next, n)
      }
      ;[reached, next] = [next, reached]
    }
    return reached[steps.length] === 1
  }
}
