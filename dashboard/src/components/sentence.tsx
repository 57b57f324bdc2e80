// The sentence that a page opens with, and the acts beside it.
import type { ComponentChildren, JSX } from 'preact'
import type { Phrase } from '../lib/lane-sentence.ts'
import type { Look } from '../lib/states.ts'
import { Chip } from './basics.tsx'

/** A sentence with bold figures. Each part is a text node, so markup in a payload stays text. */
export function Phrases({ of }: { of: readonly Phrase[] }): JSX.Element {
  return (
    <>
      {of.map((phrase, index) =>
        typeof phrase === 'string' ? (
          phrase
        ) : (
          <b key={index} class={phrase.tone === undefined ? '' : `c-${phrase.tone}`}>
            {phrase.text}
          </b>
        ),
      )}
    </>
  )
}

/** Why somebody came to this page, answered in one sentence, and what can be done about it. */
export function SentenceBar(props: {
  look: Look
  word?: string
  acts?: ComponentChildren
  children: ComponentChildren
}): JSX.Element {
  const { look, word, acts, children } = props
  return (
    <div class="why">
      <div>
        {word === undefined ? <Chip look={look} /> : <Chip look={look} text={word} />}
        <p>{children}</p>
      </div>
      {acts !== undefined && (
        <div class="btns" data-acts>
          {acts}
        </div>
      )}
    </div>
  )
}
