// `Reply` is a text for a person. It is an event of its own, so that each attempt to send it sends the same text.
import type { FlowEvent } from 'sluice'
import { lateFailureOf } from './late-failure.ts'
import type { ChatMessage, Message } from './message.ts'

export interface Reply {
  /** The last message that it answers. */
  readonly to: ChatMessage
  readonly text: string
  readonly kind: 'answer' | 'fallback'
  /** How often the provider accepted the text and then reported that it failed. */
  readonly failures: number
  /** The provider takes free text until then. */
  readonly until: number
}

/** A reply that the provider has accepted, under this id. */
export interface SentReply extends Reply {
  readonly sentId: string
}

/** Meta and Twilio accept free text only so long after the person's last message. */
const ANSWERABLE_MS = 24 * 3_600_000

export function answerableUntil(messages: readonly Message[]): number {
  return Math.max(...messages.map(({ at }) => at)) + ANSWERABLE_MS
}

/** Returns the fallback for the events of a dead letter, or the reason why the person gets no fallback. */
export function fallbackFor(events: readonly FlowEvent[], now: number): Reply | string {
  if (lateFailureOf(events)?.remedy === 'none') return 'No free text reaches the person.'
  const failed = events.find(({ type }) => type === 'chat.reply' || type === 'chat.sent')?.data as Reply | undefined
  if (failed?.kind === 'fallback') return 'The fallback text failed as well.'
  const messages = events.flatMap(({ type, data }) => (type === 'chat.message' ? [data as ChatMessage] : []))
  const to = failed?.to ?? messages.at(-1)
  if (to === undefined || to.settings.fallback_text === '') return 'There is nothing to send.'
  const until = failed?.until ?? answerableUntil(messages)
  if (now > until) return 'The person wrote more than 24 hours ago.'
  return { to, text: to.settings.fallback_text, kind: 'fallback', failures: 0, until }
}
