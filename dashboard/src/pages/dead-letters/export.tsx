// Saves the dead letters that a filter finds, with their events, as one JSON line each.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from '../../components/basics.tsx'
import { address, get } from '../../lib/api.ts'
import { count, plural } from '../../lib/format.ts'
import type { DeadLetter, Page } from '../../lib/types.ts'
import { say, sayFailed } from '../../state/toast.ts'
import { nounOf, type Filter } from './filter.ts'

const PAGE = 100

export function Export({ filter }: { filter: Filter }): JSX.Element {
  const [saved, setSaved] = useState<number>()
  const save = async (): Promise<void> => {
    setSaved(0)
    try {
      const lines: string[] = []
      const target = address('dead-letters/export', { ...filter, limit: PAGE })
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const page: Page<DeadLetter> = await get(
          cursor === '' ? target : `${target}&cursor=${encodeURIComponent(cursor)}`,
        )
        lines.push(...page.items.map((letter) => `${JSON.stringify(letter)}\n`))
        setSaved(lines.length)
        cursor = page.next
      }
      download(lines)
      say(`Saved ${plural(lines.length, nounOf(filter.kind, 1), nounOf(filter.kind, 2))} with their events.`)
    } catch (error) {
      sayFailed(error)
    }
    setSaved(undefined)
  }
  return (
    <Button small disabled={saved !== undefined} onClick={() => void save()}>
      {saved === undefined ? 'Export' : `Saving ${count(saved)}…`}
    </Button>
  )
}

function download(lines: readonly string[]): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([...lines], { type: 'application/x-ndjson' }))
  link.download = 'dead-letters.jsonl'
  link.click()
  // The browser has taken the content once the click was handled.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
