// What a limit does right now, in one sentence, and what paused it.
import { clock, countdown, percent, plural, visible } from '../../lib/format.ts'
import type { Phrase } from '../../lib/lane-sentence.ts'
import type { Limit, LimitPause } from '../../lib/types.ts'

/** The distance to full speed shrinks by this share a minute. */
const RECOVERY = 0.1
const NEAR = 1.005

const bold = (text: string): Phrase => ({ text })

export function causeOf({ cause, status, flow, by }: LimitPause): string {
  if (cause === 'operator') return by === undefined || by === '' ? 'By a person' : `By ${visible(by)}`
  const where = flow === undefined || flow === '' ? '' : `, in ${visible(flow)}`
  if (cause === 'response') return `${status === undefined ? 'A response' : `HTTP ${status}`}${where}`
  return `The app asked for it${where}`
}

export function limitSentence(limit: Limit, now: number): readonly Phrase[] {
  const { pausedUntil = 0, paused, stretch = 1, used = 0, waiting = 0, busyUntil = 0 } = limit
  const waits: readonly Phrase[] =
    waiting === 0 ? [] : [' ', bold(plural(waiting, 'lane')), waiting === 1 ? ' waits for it.' : ' wait for it.']
  if (pausedUntil > now) {
    const left = bold(`in ${countdown(pausedUntil - now)}`)
    if (paused === undefined) return ['Paused; it goes on ', left, '.', ...waits]
    const cause = causeOf(paused)
    const word = paused.cause === 'response' ? { text: cause, tone: 'limit' as const } : bold(cause)
    return ['Paused at ', clock(paused.at), ' (', word, '); it goes on ', left, '.', ...waits]
  }
  if (stretch > NEAR) {
    const minutes = Math.log((stretch - 1) / (NEAR - 1)) / -Math.log(1 - RECOVERY)
    return [
      'Slowed ',
      { text: `${stretch.toFixed(1)} times`, tone: 'limit' },
      ' after a pause; full speed is back ',
      bold(`in about ${countdown(Math.max(60_000, minutes * 60_000))}`),
      '.',
      ...waits,
    ]
  }
  if (waiting > 0 && busyUntil > now) {
    const free = bold(`in ${countdown(busyUntil - now)}`)
    return [{ text: 'The budget is used up.', tone: 'limit' }, ...waits, ' The next free slot is ', free, '.']
  }
  if (waiting > 0) return ['It gives slots in order.', ...waits]
  return used === 0 ? ['Nothing uses it right now.'] : [bold(percent(used)), ' of the budget is used; nothing waits.']
}
