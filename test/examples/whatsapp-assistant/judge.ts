// `judge` compares what people wrote with what they received.
import type { Sent } from '../../../examples/whatsapp-assistant/stand-in/outbox.ts'

/** A message of a person: its text is unique, and an answer repeats it. */
export interface WrittenMessage {
  readonly text: string
  /** The number that the answer must go to. */
  readonly phone: string
}

export interface Evidence {
  readonly written: readonly WrittenMessage[]
  /** What the provider accepted, without what it reported as failed later. */
  readonly received: readonly Pick<Sent, 'run' | 'to' | 'text'>[]
  /** The runs that a killed process was in the middle of. */
  readonly interrupted: ReadonlySet<string>
  /** The runs that the provider had accepted a message from without saying so in time. */
  readonly timedOut: ReadonlySet<string>
}

export interface Judgement {
  readonly answers: number
  /** Messages that no answer contains. */
  readonly unanswered: readonly string[]
  /** Messages that the answers of two runs contain. */
  readonly answeredTwice: readonly string[]
  /** Answers with messages in another order than they were written in, or of another person. */
  readonly mixed: readonly string[]
  /** Answers that went to somebody else. */
  readonly misdirected: readonly string[]
  /** Runs that sent an answer again, because their process was killed before it recorded that. */
  readonly sentAgainAfterKill: number
  /** The same because the provider did not say in time that it had accepted the answer. */
  readonly sentAgainAfterTimeout: number
  /** The same for no known reason, or more often than once for each reason. */
  readonly sentAgainWithoutReason: readonly string[]
  /** Answers that were sent again with another text. */
  readonly changed: readonly string[]
}

const TOKEN = /p\d+m\d+/g

export function judge({ written, received, interrupted, timedOut }: Evidence): Judgement {
  const phones = new Map(written.map(({ text, phone }) => [text, phone]))
  const runsOf = new Map<string, Set<string>>()
  const byRun = Map.groupBy(received, ({ run }) => run)
  const mixed: string[] = []
  const misdirected: string[] = []
  for (const { run, to, text } of received) {
    const tokens = text.match(TOKEN) ?? []
    for (const token of tokens) runsOf.set(token, (runsOf.get(token) ?? new Set()).add(run))
    if (!isInOrder(tokens)) mixed.push(text)
    if (tokens.some((token) => phones.get(token) !== to)) misdirected.push(`${to}: ${text}`)
  }
  const again = [...byRun].filter(([, all]) => all.length > 1)
  const reasons = (run: string): number => Number(interrupted.has(run)) + Number(timedOut.has(run))
  return {
    answers: byRun.size,
    unanswered: [...phones.keys()].filter((token) => !runsOf.has(token)),
    answeredTwice: [...runsOf].flatMap(([token, runs]) => (runs.size > 1 ? [token] : [])),
    mixed,
    misdirected,
    sentAgainAfterKill: again.filter(([run]) => interrupted.has(run)).length,
    sentAgainAfterTimeout: again.filter(([run]) => timedOut.has(run) && !interrupted.has(run)).length,
    sentAgainWithoutReason: again.flatMap(([run, all]) => (all.length > 1 + reasons(run) ? [run] : [])),
    changed: again.flatMap(([run, all]) => (new Set(all.map(({ text }) => text)).size > 1 ? [run] : [])),
  }
}

/** What must be empty or 0 for the promise of the assistant to hold. */
export function wrongs(judgement: Judgement): readonly string[] {
  const { unanswered, answeredTwice, mixed, misdirected, sentAgainWithoutReason, changed } = judgement
  return Object.entries({ unanswered, answeredTwice, mixed, misdirected, sentAgainWithoutReason, changed }).flatMap(
    ([what, all]) => all.map((one) => `${what}: ${one}`),
  )
}

/** Messages of one person, which follow each other without a gap. */
function isInOrder(tokens: readonly string[]): boolean {
  const [first, ...rest] = tokens.map((token) => token.slice(1).split('m').map(Number) as [number, number])
  return first !== undefined && rest.every(([person, n], at) => person === first[0] && n === first[1] + at + 1)
}
