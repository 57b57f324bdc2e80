// `Pulse` counts the runs that ended in each of the last 60 seconds and the lanes that come due in each of the next 60. It follows the
// store's feed, which has the changes of all processes, and reads it only when somebody asks for the counts.
import type { Millis } from '../../clock.ts'
import type { FeedEntry, Store } from '../../store/contract/index.ts'
import { INTERNAL_FLOWS } from '../stats/depth.ts'
import { getShownState, type LaneScan } from './lane-scan.ts'

interface PulseCounts {
  readonly ended: readonly number[]
  readonly failed: readonly number[]
  readonly due: readonly number[]
}

/** Each list has 60 numbers, one for each second. */
export interface PulseView {
  readonly now: Millis
  readonly step: typeof SECOND
  readonly past: { readonly from: Millis; readonly ended: readonly number[]; readonly failed: readonly number[] }
  readonly ahead: { readonly from: Millis; readonly due: readonly number[] }
  readonly flows: Readonly<Record<string, PulseCounts>>
}

export interface PulseDependencies {
  readonly store: () => Promise<Store>
  readonly scan: LaneScan
}

const SECOND = 1_000
const SECONDS = 60
const FEED_BATCH = 1_000
/** A call reads at most this many pages; the feed keeps about four. */
const MAX_PAGES = 6
const MAX_FLOWS = 100

const FAILURES: ReadonlySet<string> = new Set(['retry', 'dead', 'partial'])
const ENDINGS: ReadonlySet<string> = new Set([...FAILURES, 'done', 'dropped'])

type SecondCounts = Map<string, { ended: number; failed: number }>

export class Pulse {
  readonly #deps: PulseDependencies
  readonly #seconds = new Map<number, SecondCounts>()
  #after = 0
  #reading: Promise<void> = Promise.resolve()

  constructor(deps: PulseDependencies) {
    this.#deps = deps
  }

  async read(): Promise<PulseView> {
    const { lanes, now } = await this.#deps.scan.read()
    // One reader at a time: two would count the same entries.
    this.#reading = this.#reading.catch(() => {}).then(() => this.#follow())
    await this.#reading
    const second = Math.floor(now / SECOND)
    const first = second - SECONDS
    for (const old of this.#seconds.keys()) if (old < first) this.#seconds.delete(old)
    const total = createCounts()
    const flows = new Map<string, ReturnType<typeof createCounts>>()
    const countsOf = (flow: string): readonly ReturnType<typeof createCounts>[] => {
      const known = flows.get(flow) ?? (flows.size < MAX_FLOWS ? createCounts() : undefined)
      if (known === undefined) return [total]
      flows.set(flow, known)
      return [total, known]
    }
    for (const [at, ofSecond] of this.#seconds) {
      if (at - first >= SECONDS) continue
      for (const [flow, { ended, failed }] of ofSecond) {
        for (const counts of countsOf(flow)) {
          add(counts.ended, at - first, ended)
          add(counts.failed, at - first, failed)
        }
      }
    }
    for (const lane of lanes) {
      const ahead = Math.floor(lane.due / SECOND) - second
      if (
        INTERNAL_FLOWS.has(lane.flow) ||
        lane.due <= now ||
        ahead >= SECONDS ||
        getShownState(lane, now) === 'running'
      )
        continue
      for (const counts of countsOf(lane.flow)) add(counts.due, ahead, 1)
    }
    return {
      now,
      step: SECOND,
      past: { from: first * SECOND, ended: total.ended, failed: total.failed },
      ahead: { from: second * SECOND, due: total.due },
      flows: Object.fromEntries(flows),
    }
  }

  async #follow(): Promise<void> {
    const store = await this.#deps.store()
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const { changes, next } = await store.readFeed({ after: this.#after, n: FEED_BATCH })
      this.#after = next
      for (const change of changes) this.#count(change)
      if (changes.length === 0) return
    }
  }

  #count({ kind, detail, at, flow }: FeedEntry): void {
    if (kind !== 'settled' || !ENDINGS.has(detail) || INTERNAL_FLOWS.has(flow)) return
    const second = Math.floor(at / SECOND)
    const ofSecond: SecondCounts = this.#seconds.get(second) ?? new Map()
    this.#seconds.set(second, ofSecond)
    const counts = ofSecond.get(flow) ?? { ended: 0, failed: 0 }
    ofSecond.set(flow, counts)
    counts.ended++
    if (FAILURES.has(detail)) counts.failed++
  }
}

function createCounts(): { ended: number[]; failed: number[]; due: number[] } {
  return { ended: createZeros(), failed: createZeros(), due: createZeros() }
}

function createZeros(): number[] {
  return Array.from({ length: SECONDS }, () => 0)
}

function add(counts: number[], at: number, n: number): void {
  counts[at] = (counts[at] ?? 0) + n
}
