// The lanes of one page, kept fresh: read again as the stream reports changes, but never more often than the server likes.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { address, ApiError, get } from '../../lib/api.ts'
import type { SeenRun } from '../../lib/lane-marks.ts'
import type { Lane, LanePage } from '../../lib/types.ts'
import { listen, type Change } from '../../state/stream.ts'

export const PAGE_SIZE = 50
/** A key may make 1,200 calls a minute, and several pages may be open. */
const LEAST_PAUSE = 1_000
/** Without any change, so that lanes whose window ends are seen to run. */
const LONGEST_PAUSE = 2_000
/** A read that takes long is followed by a pause that is longer. */
const PAUSE_PER_READ = 3

const MOST_SEEN = 400
const SEEN_FOR = 3_600_000

interface Filter {
  readonly state: string
  readonly flow: string
  readonly q: string
  readonly cursor: string
}

export interface LiveLanes {
  readonly lanes: readonly Lane[] | undefined
  /** The address that the lanes came from. */
  readonly content: string | undefined
  readonly error: ApiError | undefined
  readonly next: string | undefined
  readonly counts: LanePage['counts']
  readonly seen: ReadonlyMap<string, readonly SeenRun[]>
  readonly refresh: () => void
  /** While the pointer is over the rows, they keep their order. */
  readonly hover: (isOver: boolean) => void
}

export function useLanes(filter: Filter, isFrozen: boolean): LiveLanes {
  const target = address('lanes', { ...filter, order: 'due', limit: PAGE_SIZE })
  const [page, setPage] = useState<{
    target: string
    lanes: readonly Lane[]
    next: string | undefined
    counts: LanePage['counts']
  }>()
  const [error, setError] = useState<ApiError>()
  const seen = useRef(new Map<string, readonly SeenRun[]>())
  const isOver = useRef(false)
  const shown = useRef<readonly Lane[]>([])
  const read = useRef<() => void>(() => {})

  useLayoutEffect(() => {
    if (isFrozen) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let isReading = false
    let isStopped = false
    let earliest = 0
    const plan = (pause: number): void => {
      clearTimeout(timer)
      timer = setTimeout(() => void load(), Math.max(pause, earliest - Date.now()))
    }
    const load = async (): Promise<void> => {
      if (isReading || isStopped) return
      isReading = true
      const began = Date.now()
      try {
        const { items, next, counts } = await get<LanePage>(target)
        if (isStopped) return
        const same = keepUnchanged(shown.current, items)
        shown.current = isOver.current ? keepOrder(shown.current, same) : same
        setPage({ target, lanes: shown.current, next, counts })
        setError(undefined)
      } catch (problem) {
        if (!(problem instanceof ApiError)) throw problem
        if (!isStopped) setError(problem)
      } finally {
        isReading = false
        earliest = Date.now() + Math.max(LEAST_PAUSE, (Date.now() - began) * PAUSE_PER_READ)
        if (!isStopped) plan(document.hidden ? 10_000 : LONGEST_PAUSE)
      }
    }
    read.current = () => plan(0)
    void load()
    const stop = listen((changes, skipped) => {
      learnRuns(seen.current, changes)
      if (skipped || changes.length > 0) plan(0)
    })
    return () => {
      isStopped = true
      clearTimeout(timer)
      stop()
    }
  }, [target, isFrozen])

  return {
    lanes: page?.lanes,
    content: page?.target,
    error,
    next: page?.next,
    counts: page?.counts,
    seen: seen.current,
    refresh: () => read.current(),
    hover: (over) => (isOver.current = over),
  }
}

/** `keepUnchanged` returns the known objects of lanes that are as before, so that their marks need not be drawn again. */
export function keepUnchanged(before: readonly Lane[], items: readonly Lane[]): readonly Lane[] {
  const known = new Map(before.map((lane) => [lane.id, lane]))
  return items.map((lane) => {
    const old = known.get(lane.id)
    return old !== undefined && JSON.stringify(old) === JSON.stringify(lane) ? old : lane
  })
}

/** `keepOrder` leaves known lanes where they are and puts new ones at the end. */
export function keepOrder(before: readonly Lane[], items: readonly Lane[]): readonly Lane[] {
  const fresh = new Map(items.map((lane) => [lane.id, lane]))
  const kept = before.flatMap(({ id }) => fresh.get(id) ?? [])
  const known = new Set(kept.map(({ id }) => id))
  return [...kept, ...items.filter(({ id }) => !known.has(id))]
}

const begun = new Map<string, number>()

/** The list has no ended runs; those of the last hour are remembered from the stream while the page is open. */
export function learnRuns(seen: Map<string, readonly SeenRun[]>, changes: readonly Change[]): void {
  for (const { kind, lane, at, detail } of changes) {
    if (lane === undefined) continue
    if (kind === 'claimed') begun.set(lane, at)
    if (kind !== 'settled' && kind !== 'dead') continue
    // A run that goes on has its attempts in the list.
    if (detail === 'retry' || detail === 'snoozed') continue
    const tone = kind === 'dead' ? 'fail' : detail === 'done' || detail === 'partial' ? 'run' : 'still'
    const runs = (seen.get(lane) ?? []).filter(({ to }) => at - to < SEEN_FOR).slice(-7)
    seen.delete(lane)
    seen.set(lane, [...runs, { from: begun.get(lane) ?? at, to: at, tone }])
    begun.delete(lane)
  }
  for (const map of [seen, begun]) {
    for (const id of map.keys()) {
      if (map.size <= MOST_SEEN) break
      map.delete(id)
    }
  }
}
