// The command line of the demo.
import { parseArgs } from 'node:util'
import type { Millis } from 'sluice'

export const USAGE = `npm start -- [options]
  --play           have simulated users send webhooks, and check what comes of them
  --seconds=N      stop after N seconds (with --play 60, else never)
  --forever        go on until Ctrl-C
  --store=ADDRESS  sqlite:<file> or memory: (a new file in a temporary folder)
  --seed=N         other users, other luck (1)
  --port=N         where to listen (8787, or PORT of the environment)
  --help           this
`

export interface Options {
  readonly help: boolean
  /** Undefined: until it is stopped. */
  readonly lasts: Millis | undefined
  /** Undefined: a new file that is removed in the end. */
  readonly store: string | undefined
  readonly seed: number
  readonly play: boolean
  readonly port: number | undefined
}

const PLAYED_FOR = '60'

/** Throws what is wrong with them. */
export function optionsFrom(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      play: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      port: { type: 'string' },
      forever: { type: 'boolean', default: false },
      store: { type: 'string' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  const seconds = Number(values.seconds ?? PLAYED_FOR)
  if (!(seconds > 0)) throw new Error(`--seconds=${values.seconds} is not a number above 0.`)
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed=${values.seed} is not a whole number.`)
  const port = values.port === undefined ? undefined : Number(values.port)
  if (port !== undefined && !(Number.isInteger(port) && port >= 0)) throw new Error(`--port=${values.port} is no port.`)
  const endless = values.forever || (!values.play && values.seconds === undefined)
  const lasts = endless ? undefined : seconds * 1_000
  return { help: values.help, lasts, store: values.store, seed, play: values.play, port }
}
