// People who edit their tasks in bursts, at random but the same for the same seed, so that what was seen once can be seen again.
import type { Millis } from 'sluice'
import type { StoredPage, User } from '../stand-in/page.ts'
import type { NotionStandIn } from '../stand-in/notion.ts'

export interface Edit {
  readonly at: Millis
  readonly page: StoredPage
  readonly importance: number
  readonly by: User
}

export interface BurstOptions {
  readonly users: number
  readonly tasksEach: number
  /** Everybody edits within it, at least once. */
  readonly within: Millis
  /** How many bursts somebody has at most. */
  readonly mostBursts: number
  readonly chance: () => number
}

const EDITS_MOST = 6
const APART_MOST = 2_000
const IMPORTANCE_MOST = 100

/** Adds the users' tasks, and answers their edits in order of time. */
export function bursts(notion: NotionStandIn, options: BurstOptions): readonly Edit[] {
  const { chance } = options
  const upTo = (most: number): number => Math.floor(chance() * (most + 1))
  const edits: Edit[] = []
  for (let n = 0; n < options.users; n++) {
    const by: User = { id: `user-${n}`, name: `user ${n}` }
    const pages = Array.from({ length: options.tasksEach }, (_, at) =>
      notion.add({ name: `task ${at}`, assignees: [by], importance: upTo(IMPORTANCE_MOST), estimate: 1 }),
    )
    for (let burst = upTo(options.mostBursts - 1); burst >= 0; burst--) {
      let at = chance() * options.within
      for (let left = upTo(EDITS_MOST - 1); left >= 0; left--) {
        const page = pages[upTo(pages.length - 1)]
        if (page !== undefined)
          edits.push({ at: Math.min(Math.round(at), options.within), page, importance: upTo(IMPORTANCE_MOST), by })
        at += chance() * APART_MOST
      }
    }
  }
  return edits.toSorted((one, other) => one.at - other.at)
}
