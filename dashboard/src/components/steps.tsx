// A list of what happens next, with times at the left.
import type { ComponentChildren, JSX } from 'preact'
import type { Look, Tone } from '../lib/states.ts'
import { Icon } from './icon.tsx'

export interface NextStep {
  readonly when: string
  readonly look: Pick<Look, 'icon' | 'tone'>
  readonly title: ComponentChildren
  readonly text: ComponentChildren
  readonly tone?: Tone
  /** What happens only if something goes wrong. */
  readonly isElse?: boolean
}

export function Steps({ steps }: { steps: readonly NextStep[] }): JSX.Element {
  return (
    <ol class="steps">
      {steps.map(({ when, look, title, text, tone, isElse }, index) => (
        <li key={index} class={isElse === true ? 'else' : ''}>
          <span class={tone === undefined ? 'when' : `when c-${tone}`}>{when}</span>
          <Icon name={look.icon} size={14} tone={look.tone} />
          <div>
            <b>{title}</b>
            <p>{text}</p>
          </div>
        </li>
      ))}
    </ol>
  )
}
