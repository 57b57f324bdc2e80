// The command line of the demo.
import { parseArgs } from 'node:util'
import type { Millis } from '../index.ts'

export const USAGE = `npm start -- [options]
  --seconds=N      stop after N seconds (60)
  --forever        go on until Ctrl-C
  --store=ADDRESS  sqlite:<file> or memory: (a new file in a temporary folder)
  --seed=N         other users, other luck (1)
  --help           this
`

export interface Options {
  readonly help: boolean
  /** Undefined: until it is stopped. */
  readonly lasts: Millis | undefined
  /** Undefined: a new file that is removed in the end. */
  readonly store: string | undefined
  readonly seed: number
}

/** Throws what is wrong with them. */
export function optionsFrom(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      forever: { type: 'boolean', default: false },
      store: { type: 'string' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  const seconds = Number(values.seconds)
  if (!(seconds > 0)) throw new Error(`--seconds=${values.seconds} is not a number above 0.`)
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed=${values.seed} is not a whole number.`)
  return { help: values.help, lasts: values.forever ? undefined : seconds * 1_000, store: values.store, seed }
}
