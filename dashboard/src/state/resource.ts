// Reads of the API that stay fresh. Old data stays visible while newer data is fetched.
import { useLayoutEffect, useMemo } from 'preact/hooks'
import { signal, type Signal } from '@preact/signals'
import { ApiError, get } from '../lib/api.ts'
import { learnTime } from '../lib/clock.ts'

export interface Resource<T> {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  /** When `data` was read, by the browser's clock. */
  readonly readAt: number
  /** `data` belongs to another address, and the answer for the present one is on its way. */
  readonly isStale: boolean
  readonly refresh: () => void
}

interface Entry<T> {
  readonly target: string
  readonly state: Signal<{
    readonly data: T | undefined
    readonly error: ApiError | undefined
    readonly readAt: number
  }>
  load(): Promise<void>
  request?: Promise<void> | undefined
  cancel?: AbortController | undefined
  /** Ends the request under way. */
  leave(): void
  readers: number
}

/** Answers kept for pages that were left, so that the way back shows them at once. */
const KEPT = 24
const entries = new Map<string, Entry<unknown>>()

function entryOf<T>(target: string): Entry<T> {
  const known = entries.get(target)
  if (known !== undefined) {
    // The most recently used entry stands last.
    entries.delete(target)
    entries.set(target, known)
    return known as Entry<T>
  }
  const state = signal<{ data: T | undefined; error: ApiError | undefined; readAt: number }>({
    data: undefined,
    error: undefined,
    readAt: 0,
  })
  const entry: Entry<T> = {
    target,
    state,
    readers: 0,
    load() {
      if (entry.request !== undefined) return entry.request
      const cancel = new AbortController()
      const request = read(entry, cancel.signal).finally(() => {
        if (entry.request === request) entry.request = undefined
      })
      entry.cancel = cancel
      entry.request = request
      return request
    },
    leave() {
      entry.cancel?.abort()
      entry.request = undefined
    },
  }
  entries.set(target, entry)
  for (const [other, { readers }] of entries) {
    if (entries.size <= KEPT) break
    if (readers === 0 && other !== target) entries.delete(other)
  }
  return entry
}

async function read<T>({ target, state }: Entry<T>, cancelled: AbortSignal): Promise<void> {
  try {
    const data = await get<T & { readonly now?: number }>(target, cancelled)
    if (typeof data.now === 'number') learnTime(data.now)
    state.value = { data, error: undefined, readAt: Date.now() }
  } catch (error) {
    if (cancelled.aborted) return
    if (!(error instanceof ApiError)) throw error
    state.value = { ...state.value, error }
  }
}

export function forgetResources(): void {
  entries.clear()
}

/**
 * `useResource` reads an address and, with `every`, reads it again and again while the page can be seen. An undefined
 * address reads nothing. Readers of the same address share one request.
 */
export function useResource<T>(target: string | undefined, { every }: { readonly every?: number } = {}): Resource<T> {
  const entry = useMemo(() => (target === undefined ? undefined : entryOf<T>(target)), [target])
  const last = useMemo<{ data: T | undefined }>(() => ({ data: undefined }), [])
  // Before the paint, which on a busy machine would delay the request.
  useLayoutEffect(() => {
    if (entry === undefined) return undefined
    entry.readers += 1
    void entry.load()
    const stop = every === undefined ? () => {} : repeat(() => void entry.load(), every)
    return () => {
      stop()
      entry.readers -= 1
      // A browser has six connections: an abandoned request would delay those of the next page.
      if (entry.readers === 0) entry.leave()
    }
  }, [entry, every])
  const { data, error, readAt } = entry?.state.value ?? { data: undefined, error: undefined, readAt: 0 }
  if (data !== undefined) last.data = data
  return {
    data: data ?? (error === undefined && entry !== undefined ? last.data : undefined),
    error,
    readAt,
    isStale: data === undefined && last.data !== undefined,
    refresh: () => void entry?.load(),
  }
}

/** `repeat` calls at an interval while the page can be seen, and at once when it can be seen again. */
export function repeat(call: () => void, every: number): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) call()
  }, every)
  const seen = (): void => {
    if (!document.hidden) call()
  }
  document.addEventListener('visibilitychange', seen)
  return () => {
    clearInterval(timer)
    document.removeEventListener('visibilitychange', seen)
  }
}
