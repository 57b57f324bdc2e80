// An act on many things: the question with its number, what it costs, one to try first, then progress until all are done.
import type { ComponentChildren, JSX } from 'preact'
import { count } from '../lib/format.ts'
import { Bar, Button } from './basics.tsx'

interface BulkProps {
  /** The whole question, e.g. "Retry 186 dead letters of invoices?". */
  question: ComponentChildren
  /** What the act costs, or what it does not undo. */
  cost?: ComponentChildren
  /** The button says what it does to how many: "Retry 186". */
  act: string
  isDanger?: boolean
  isBusy?: boolean
  onAct: () => void
  onTryOne?: () => void
  onCancel: () => void
}

export function BulkBar(props: BulkProps): JSX.Element {
  const { question, cost, act, isDanger = false, isBusy = false, onAct, onTryOne, onCancel } = props
  return (
    <div class="bulk" role="group" aria-label="Act on all of them">
      <div>
        <p class="question">{question}</p>
        {cost !== undefined && <p class="small dim">{cost}</p>}
      </div>
      <div class="btns">
        <Button kind="bare" onClick={onCancel}>
          Cancel
        </Button>
        {onTryOne !== undefined && (
          <Button onClick={onTryOne} disabled={isBusy}>
            Try one first
          </Button>
        )}
        <Button kind={isDanger ? 'danger' : 'solid'} onClick={onAct} disabled={isBusy}>
          {act}
        </Button>
      </div>
    </div>
  )
}

interface ProgressProps {
  /** What goes on, e.g. "Retrying". */
  title: string
  total: number
  done: number
  /** What ended badly, with its word, e.g. "dead again". */
  failed?: number
  failedWord?: string
  controls?: ComponentChildren
}

/** How far a long act is: done, ended badly, to go. */
export function Progress(props: ProgressProps): JSX.Element {
  const { title, total, done, failed = 0, failedWord = 'failed', controls } = props
  const whole = Math.max(1, total)
  const open = Math.max(0, total - done - failed)
  return (
    <div class="progress">
      <div class="row">
        <b>{title}</b>
        <span class="soft" role="status">
          {count(done)} done{failed > 0 && `, ${count(failed)} ${failedWord}`}, {count(open)} to go
        </span>
        {controls !== undefined && <span class="push row">{controls}</span>}
      </div>
      <Bar
        label={`${count(done + failed)} of ${count(total)}`}
        parts={[
          { tone: 'run', share: done / whole },
          { tone: 'fail', share: failed / whole },
        ]}
      />
    </div>
  )
}
