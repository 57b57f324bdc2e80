// A plain text area for code, with line numbers beside it. The tab key keeps its meaning for the keyboard: it leaves the field.
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'

export function CodeArea(props: {
  label: string
  value: string
  rows: number
  onChange: (value: string) => void
  badLine?: number
  error?: string
}): JSX.Element {
  const { label, value, rows, onChange, badLine, error } = props
  const numbers = useRef<HTMLDivElement>(null)
  const lines = value.split('\n').length
  return (
    <div class={`code-area${error === undefined ? '' : ' bad'}`}>
      <div class="code-numbers" ref={numbers} aria-hidden="true">
        {Array.from({ length: Math.max(lines, rows) }, (_, index) => (
          <span key={index} class={index + 1 === badLine ? 'bad' : index < lines ? '' : 'none'}>
            {index + 1}
          </span>
        ))}
      </div>
      <textarea
        aria-label={label}
        rows={rows}
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
        onScroll={(event) => {
          if (numbers.current !== null) numbers.current.scrollTop = event.currentTarget.scrollTop
        }}
      />
      {error !== undefined && <p class="small c-fail">{error}</p>}
    </div>
  )
}
