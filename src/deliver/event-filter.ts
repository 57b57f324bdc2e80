// `parseEventFilter` checks the globs of an endpoint. Subscribers write them and every event of their tenant is
// matched, so they are bounded.
import { SluiceError } from '../errors.ts'

const GLOBS_MAX = 100
const GLOB_LENGTH_MAX = 256
const GLOB_STARS_MAX = 4
const LENGTH_MAX = 8_192
const STARS_MAX = 100

/** `parseEventFilter` returns the globs of a filter; null and an empty list mean all events. */
export function parseEventFilter(given: readonly string[] | null | undefined): readonly string[] {
  const filter: unknown = given ?? []
  if (!Array.isArray(filter)) throw invalid('a list of globs', JSON.stringify(filter) ?? typeof filter)
  if (filter.length === 0) return ['**']
  if (filter.length > GLOBS_MAX) throw invalid(`at most ${GLOBS_MAX} globs`, `${filter.length}`)
  let [length, stars] = [0, 0]
  for (const glob of filter as readonly unknown[]) {
    if (typeof glob !== 'string' || glob === '' || glob.length > GLOB_LENGTH_MAX) {
      throw invalid(`globs of 1 to ${GLOB_LENGTH_MAX} characters`, shown(glob))
    }
    const its = glob.match(/\*+/g)?.length ?? 0
    if (its > GLOB_STARS_MAX) throw invalid(`globs with at most ${GLOB_STARS_MAX} stars each`, shown(glob))
    length += glob.length
    stars += its
  }
  if (stars > STARS_MAX) throw invalid(`globs with at most ${STARS_MAX} stars in all`, `${stars}`)
  if (length > LENGTH_MAX)
    throw invalid(`globs with at most ${LENGTH_MAX.toLocaleString('en')} characters in all`, `${length}`)
  return filter as readonly string[]
}

function shown(glob: unknown): string {
  return typeof glob === 'string' ? JSON.stringify(glob.slice(0, 50)) : typeof glob
}

function invalid(rule: string, got: string): SluiceError {
  const text = `endpoint: eventFilter must be ${rule}; got ${got}. Leave it out for all events; nothing was stored.`
  return new SluiceError('ENDPOINT_INVALID', text)
}
