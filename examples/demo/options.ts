// The command line of the demo.
import { parseArgs } from 'node:util'
import type { Millis } from 'sluice'

export const USAGE = `npm start -- [options]
  --quiet          send no webhooks: show only what you send yourself
  --seconds=N      stop after N seconds; the default is to run until Ctrl-C
  --store=ADDRESS  sqlite:<file> or memory:; the default is a new file in a temporary folder
  --seed=N         other random users and faults; the default is 1
  --port=N         where to listen; the default is PORT of the environment, or 8787
  --help           print this text
`

export interface Options {
  readonly help: boolean
  /** Undefined until Ctrl-C. */
  readonly lasts: Millis | undefined
  /** Undefined for a new file, which is removed at the end. */
  readonly store: string | undefined
  readonly seed: number
  readonly play: boolean
  readonly port: number | undefined
}

/** `optionsFrom` throws an error that names the wrong option. */
export function optionsFrom(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quiet: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      port: { type: 'string' },
      store: { type: 'string' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  const seconds = values.seconds === undefined ? undefined : Number(values.seconds)
  if (seconds !== undefined && !(seconds > 0))
    throw new Error(`--seconds must be a number above 0; got ${values.seconds}.`)
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be a whole number; got ${values.seed}.`)
  const port = values.port === undefined ? undefined : Number(values.port)
  if (port !== undefined && !(Number.isInteger(port) && port >= 0))
    throw new Error(`--port must be a port number; got ${values.port}.`)
  const lasts = seconds === undefined ? undefined : seconds * 1_000
  return { help: values.help, lasts, store: values.store, seed, play: !values.quiet, port }
}
