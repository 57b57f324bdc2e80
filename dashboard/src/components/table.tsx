// A table whose rows are links: `j` and `k` choose a row, `↵` opens it, and `x` marks it for an act on several.
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { focusActs } from '../state/acts.ts'
import { useGradual } from '../state/gradual.ts'
import { useKeys } from '../state/keyboard.ts'
import { go } from '../state/router.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly isNumber?: boolean
  /** Left out where there is room for little. */
  readonly isWide?: boolean
  readonly class?: string
}

interface TableProps<Row> {
  /** What the rows are, for screen readers. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  /** The address of the rows; undefined while those of another address are shown. */
  content?: string | undefined
  idOf: (row: Row) => string
  /** Where a row leads; its first cell must contain the link itself. */
  hrefOf: (row: Row) => string
  /** The rows that are marked, if rows can be marked at all. */
  marked?: ReadonlySet<string>
  onMark?: (marked: ReadonlySet<string>) => void
  /** Chosen from outside, e.g. by the address. */
  chosenId?: string | undefined
  onChoose?: (id: string) => void
  class?: string
}

export function Table<Row>(props: TableProps<Row>): JSX.Element {
  const { label, columns, rows, idOf, hrefOf, marked, onMark, class: extra } = props
  const [chosen, setChosen] = useState<string | undefined>(props.chosenId)
  useEffect(() => setChosen(props.chosenId), [props.chosenId])
  const drawn = useGradual(rows.length, props.content)
  const at = rows.findIndex((row) => idOf(row) === chosen)
  const choose = (index: number): void => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))]
    if (row === undefined) return
    setChosen(idOf(row))
    props.onChoose?.(idOf(row))
    // The link of the row takes the focus, so that Enter opens it and a screen reader names it.
    const element = document.querySelector(`[data-row="${CSS.escape(idOf(row))}"]`)
    element?.querySelector('a')?.focus({ preventScroll: true })
    element?.scrollIntoView({ block: 'nearest' })
  }
  const mark = (ids: readonly string[], isMarked: boolean): void => {
    const next = new Set(marked)
    for (const id of ids) {
      if (isMarked) next.add(id)
      else next.delete(id)
    }
    onMark?.(next)
  }
  const anchor = useRef<string>(undefined)
  const markChosen = (): void => {
    if (chosen === undefined || marked === undefined) return
    anchor.current = chosen
    mark([chosen], !marked.has(chosen))
  }
  /** From the row that was marked last to this one. */
  const markRange = (): void => {
    const from = rows.findIndex((row) => idOf(row) === anchor.current)
    if (at === -1) return
    const [first, last] = from === -1 ? [at, at] : [Math.min(from, at), Math.max(from, at)]
    mark(rows.slice(first, last + 1).map(idOf), true)
  }
  useKeys({
    j: () => choose(at + 1),
    k: () => choose(at === -1 ? 0 : at - 1),
    Enter: () => {
      const row = rows[at]
      if (row !== undefined) go(hrefOf(row))
    },
    '.': () => {
      const row = rows[Math.max(0, at)]
      if (row === undefined) return
      go(hrefOf(row))
      focusActs()
    },
    ...(marked !== undefined && { x: markChosen, X: markRange }),
  })
  const all = rows.map(idOf)
  const isAllMarked = marked !== undefined && all.length > 0 && all.every((id) => marked.has(id))
  return (
    <table class={extra} aria-label={label}>
      <thead>
        <tr>
          {marked !== undefined && (
            <th scope="col" class="mark-cell">
              <input
                type="checkbox"
                class="check"
                aria-label="Choose all rows shown"
                checked={isAllMarked}
                onChange={() => mark(all, !isAllMarked)}
              />
            </th>
          )}
          {columns.map((column) => (
            <th key={column.title} scope="col" class={classOf({ ...column, class: '' })}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, drawn).map((row) => {
          const id = idOf(row)
          return (
            <tr
              key={id}
              data-row={id}
              data-link
              class={id === chosen ? 'chosen' : ''}
              onClick={(event) => {
                const isControl = event.target instanceof Element && event.target.closest('a, button, input, label')
                const isSelecting = (getSelection()?.toString() ?? '') !== ''
                if (isControl === null && !isSelecting) go(hrefOf(row))
              }}
            >
              {marked !== undefined && (
                <td class="mark-cell">
                  <input
                    type="checkbox"
                    class="check"
                    aria-label="Choose this row"
                    checked={marked.has(id)}
                    onChange={(event) => mark([id], event.currentTarget.checked)}
                  />
                </td>
              )}
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function classOf<Row>({ isNumber = false, isWide = false, class: extra = '' }: Column<Row>): string {
  return [isNumber ? 'num' : '', isWide ? 'wide-only' : '', extra].filter((name) => name !== '').join(' ')
}
