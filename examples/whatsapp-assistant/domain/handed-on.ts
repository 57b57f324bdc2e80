// `handedOn` is the text that the model gets for everything that a person wrote since the last answer.
import type { Message } from './message.ts'

export interface HandedOn {
  readonly text: string
  readonly is_aggregated: boolean
}

/**
 * The first message, then a line for each further one with the seconds since the first. The messages come in the order in which the lane
 * received them. Their times only label them, and a label never decreases, because the clocks of phones and providers differ.
 */
export function handedOn(messages: readonly Pick<Message, 'text' | 'at'>[]): HandedOn {
  const [first, ...further] = messages
  if (first === undefined) return { text: '', is_aggregated: false }
  let seconds = 0
  const lines = further.map(({ text, at }) => {
    seconds = Math.max(seconds, Math.floor((at - first.at) / 1_000))
    return `[+${seconds}s] ${text}`
  })
  return { text: [first.text, ...lines].join('\n'), is_aggregated: further.length > 0 }
}
