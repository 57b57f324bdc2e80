// `naturalDelay` is about how long a person would need to type a reply.
import { hash } from 'node:crypto'
import type { Settings } from './settings.ts'

const PER_CHARACTER = 30
const MIN = 1_000
const MAX = 8_000

/** The same seed (the id of the run) gives the same delay, so that a repeated run does not differ. */
export function naturalDelay(reply: string, { delay_variance_percent: percent }: Settings, seed: string): number {
  const typed = Math.min(MAX, Math.max(MIN, reply.length * PER_CHARACTER))
  const chance = parseInt(hash('sha256', seed).slice(0, 8), 16) / 2 ** 32
  return Math.round(typed * (1 + (percent / 100) * (2 * chance - 1)))
}
