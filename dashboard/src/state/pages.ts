// A list that is read page by page: the first page stays fresh, and older ones are added when the reader asks.
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get } from '../lib/api.ts'
import type { Page } from '../lib/types.ts'
import { useResource, type Resource } from './resource.ts'

export interface Pages<Item> extends Resource<Page<Item>> {
  readonly items: readonly Item[]
  /** Reads the next page; undefined when there is none. */
  readonly more: (() => void) | undefined
}

export function usePages<Item extends { readonly id: string | number }>(target: string, every: number): Pages<Item> {
  const first = useResource<Page<Item>>(target, { every })
  const [older, setOlder] = useState<readonly Page<Item>[]>([])
  useEffect(() => setOlder([]), [target])
  const next = older.length === 0 ? first.data?.next : older.at(-1)?.next
  const known = new Set(first.data?.items.map(({ id }) => id))
  const items = [
    ...(first.data?.items ?? []),
    ...older.flatMap((page) => page.items).filter(({ id }) => !known.has(id)),
  ]
  const load = async (cursor: string): Promise<void> => {
    try {
      const page = await get<Page<Item>>(`${target}&cursor=${encodeURIComponent(cursor)}`)
      setOlder((before) => [...before, page])
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      first.refresh()
    }
  }
  return { ...first, items, more: next === undefined ? undefined : () => void load(next) }
}
