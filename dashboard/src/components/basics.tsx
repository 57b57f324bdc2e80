// The small parts that every page is made of.
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../lib/api.ts'
import { clock } from '../lib/format.ts'
import type { Look } from '../lib/states.ts'
import { say } from '../state/toast.ts'
import { Icon, type IconName } from './icon.tsx'

type Children = { children?: ComponentChildren }

/** A state as colour, icon and word: tinted where it stands alone, plain in tables. */
export function Chip({ look, plain = false, text }: { look: Look; plain?: boolean; text?: string }): JSX.Element {
  return (
    <span class={`chip ${look.tone}${plain ? ' plain' : ''}`}>
      <Icon name={look.icon} size={12} />
      {text ?? look.word}
    </span>
  )
}

interface PanelProps extends Children {
  title?: ComponentChildren
  remark?: ComponentChildren
  controls?: ComponentChildren
  label?: string
  class?: string
}

/** A surface with a head: title, remark, then controls at its right. */
export function Panel({ title, remark, controls, label, class: extra, children }: PanelProps): JSX.Element {
  return (
    <section class={`panel${extra === undefined ? '' : ` ${extra}`}`} aria-label={label}>
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {remark !== undefined && <span class="dim cut">{remark}</span>}
          {controls !== undefined && <span class="push row">{controls}</span>}
        </header>
      )}
      {children}
    </section>
  )
}

interface ButtonProps extends Children {
  onClick?: () => void
  kind?: 'plain' | 'solid' | 'danger' | 'bare'
  icon?: IconName
  small?: boolean
  disabled?: boolean
  hint?: string
  type?: 'button' | 'submit'
  label?: string
}

export function Button(props: ButtonProps): JSX.Element {
  const {
    onClick,
    kind = 'plain',
    icon,
    small = false,
    disabled = false,
    hint,
    type = 'button',
    label,
    children,
  } = props
  return (
    <button
      type={type}
      class={`btn ${kind}${small ? ' small-btn' : ''}`}
      disabled={disabled}
      onClick={onClick}
      aria-label={label}
    >
      {icon !== undefined && <Icon name={icon} size={12} />}
      {children}
      {hint !== undefined && <kbd aria-hidden="true">{hint}</kbd>}
    </button>
  )
}

export function IconButton({
  icon,
  label,
  onClick,
}: {
  icon: IconName
  label: string
  onClick: () => void
}): JSX.Element {
  return (
    <button type="button" class="icon-btn" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  )
}

export interface Segment {
  readonly value: string
  readonly text: string
  readonly count?: number | undefined
  readonly look?: Pick<Look, 'icon' | 'tone'>
}

/** A choice of one out of a few, with counts. */
export function Segments(props: {
  label: string
  value: string
  options: readonly Segment[]
  onChange: (value: string) => void
}): JSX.Element {
  const { label, value, options, onChange } = props
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value ? 'true' : 'false'}
          onClick={() => onChange(option.value)}
        >
          {option.look !== undefined && <Icon name={option.look.icon} size={12} tone={option.look.tone} />}
          {option.text}
          {option.count !== undefined && <span class="segment-count">{option.count.toLocaleString('en')}</span>}
        </button>
      ))}
    </div>
  )
}

/** A letter after a pause is reported at once, letters in quick succession together: each report is a request. */
const REPORT_EVERY = 150

/** `useReport` reports a changed draft, at most every 150 ms. It returns the text that it reported last. */
export function useReport(draft: string, value: string, report: (draft: string) => void): { current: string } {
  const reported = useRef(value)
  const last = useRef(-REPORT_EVERY)
  useEffect(() => {
    if (draft === reported.current) return undefined
    const send = (): void => {
      last.current = performance.now()
      reported.current = draft
      report(draft)
    }
    const pause = last.current + REPORT_EVERY - performance.now()
    if (pause <= 0) {
      send()
      return undefined
    }
    const timer = setTimeout(send, pause)
    return () => clearTimeout(timer)
  }, [draft])
  return reported
}

/** A text field that reports its value while the reader types. */
export function Field(props: {
  label: string
  value: string
  placeholder?: string
  icon?: IconName
  wide?: boolean
  autofocus?: boolean
  onChange: (value: string) => void
}): JSX.Element {
  const { label, value, placeholder, icon, wide = false, autofocus = false, onChange } = props
  const [draft, setDraft] = useState(value)
  const reported = useReport(draft, value, onChange)
  const known = useRef(value)
  // In the rendering itself: an effect may run when the next letters have been reported, and would take them back.
  if (known.current !== value) {
    known.current = value
    if (value !== reported.current) {
      reported.current = value
      setDraft(value)
    }
  }
  return (
    <span class={`field${wide ? ' wide' : ''}${draft === '' ? ' none' : ''}`}>
      {icon !== undefined && <Icon name={icon} size={14} />}
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        value={draft}
        autocomplete="off"
        spellcheck={false}
        autofocus={autofocus}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => event.key === 'Enter' && onChange(draft)}
      />
    </span>
  )
}

export function Select(props: {
  label: string
  value: string
  options: readonly { readonly value: string; readonly text: string }[]
  onChange: (value: string) => void
}): JSX.Element {
  const { label, value, options, onChange } = props
  return (
    <label class={`field select${value === '' ? ' none' : ''}`}>
      <span class="dim">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Text of a program, with a button that copies it. It is never more than text. */
export function Code({ text, label, wrap = false }: { text: string; label: string; wrap?: boolean }): JSX.Element {
  return (
    <div class="shell">
      {/* A block that scrolls must be reachable by keyboard. */}
      <pre class={`code${wrap ? ' wrap' : ''}`} tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={`Copy ${label}`} />
    </div>
  )
}

export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  return <IconButton icon="copy" label={label} onClick={() => void copy(text)} />
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    say('Copied.')
  } catch {
    // Without a secure context the browser has no clipboard; a selection still copies.
    const area = document.createElement('textarea')
    area.value = text
    area.className = 'hidden-text'
    document.body.append(area)
    area.select()
    const isCopied = document.execCommand('copy')
    area.remove()
    if (isCopied) say('Copied.')
  }
}

/** What would be here, and how to make it come. */
export function Empty({ icon, title, children }: Children & { icon: IconName; title: string }): JSX.Element {
  return (
    <div class="empty">
      <Icon name={icon} />
      <b>{title}</b>
      {children !== undefined && <p>{children}</p>}
    </div>
  )
}

/** Bones in the shape of what comes. The stylesheet shows them only after 150 ms. */
export function Bones({ rows = 4 }: { rows?: number }): JSX.Element {
  return (
    <div class="bones" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  )
}

/** What does not work, its code, what helps, and a way to try again. */
export function Failure({ error, onRetry }: { error: ApiError; onRetry?: () => void }): JSX.Element {
  return (
    <Note tone="fail" icon="s-dead">
      <b>{error.message}</b> {error.fix} <code>{error.code}</code>
      {onRetry !== undefined && (
        <>
          {' '}
          <button type="button" class="link" onClick={onRetry}>
            Try again
          </button>
        </>
      )}
    </Note>
  )
}

export function Note({ tone, icon, children }: Children & { tone: Look['tone']; icon: IconName }): JSX.Element {
  return (
    <div class={`note ${tone}`}>
      <Icon name={icon} size={14} tone={tone} />
      <div>{children}</div>
    </div>
  )
}

/** One line of facts: a dim name, then the value. */
export function Facts({
  items,
}: {
  items: readonly (readonly [string, ComponentChildren] | undefined)[]
}): JSX.Element {
  return (
    <dl class="facts">
      {items.map(
        (item) =>
          item !== undefined && (
            <div key={item[0]}>
              <dt>{item[0]}</dt>
              <dd>{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

export interface Part {
  readonly tone: string
  readonly share: number
}

/** A bar of parts, drawn with attributes because the page has no inline styles. */
export function Bar({ parts, label }: { parts: readonly Part[]; label: string }): JSX.Element {
  let x = 0
  return (
    <svg class="bar" role="img" aria-label={label} preserveAspectRatio="none">
      {parts.map(({ tone, share }, index) => {
        const at = x
        x += share * 100
        return (
          <rect key={index} class={`fill-${tone}`} x={`${at}%`} width={`${Math.max(0, share * 100)}%`} height="6" />
        )
      })}
    </svg>
  )
}

export function Mono({ children }: Children): JSX.Element {
  return <span class="mono">{children}</span>
}

/** `At` shows the time of the day; its tooltip has the whole date. */
export function At({ at }: { at: number }): JSX.Element {
  return (
    <time class="nowrap" dateTime={new Date(at).toISOString()} title={new Date(at).toString()}>
      {clock(at)}
    </time>
  )
}
