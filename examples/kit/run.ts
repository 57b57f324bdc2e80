// `runExample` is the command line of an example: it plays the scenarios, serves, or works for another process.
import { parseArgs } from 'node:util'
import type { Example } from './example.ts'
import { play } from './play.ts'
import { openPlace } from './postgres.ts'
import { serve } from './serve.ts'
import { work } from './workers.ts'

const USAGE = `npm run example <name> -- [options]
  --serve          serve until Ctrl-C, with a page at / if the example has one
  --store=ADDRESS  memory:, sqlite:<file>, postgres://…, or postgres for an embedded server
  --only=TEXT      play only the scenarios whose title contains TEXT
  --port=N         with --serve: where to listen (8787, or PORT of the environment)
  --help           show this text
`
const PORT = 8787

const write = (line: string): void => void process.stdout.write(`${line}\n`)

/** Sets the exit code. 0: all is well. 1: a check failed, or the example broke off. 2: the options make no sense. */
export async function runExample<World>(example: Example<World>, args = process.argv.slice(2)): Promise<void> {
  try {
    process.exitCode = await run(example, args)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}

async function run<World>(example: Example<World>, args: readonly string[]): Promise<number> {
  const flags = Object.keys(example.flags ?? {})
  const usage = USAGE + flags.map((flag) => `  --${flag}\n`).join('')
  const parsed = parse(args, flags)
  if (typeof parsed === 'string') {
    process.stderr.write(`${parsed}\n\n${usage}`)
    return 2
  }
  const { values, set } = parsed
  if (values.help) {
    write(usage)
    return 0
  }
  if (values.worker) {
    await work(example)
    return 0
  }
  const env = { ...example.env, ...process.env, ...Object.assign({}, ...set.map((flag) => example.flags?.[flag])) }
  const port = Number(values.port ?? process.env['PORT'] ?? PORT)
  const real = example.real?.(env)
  if (real !== undefined) {
    await real({ env, port, write })
    return 0
  }
  const needed = values.serve && example.workers !== undefined ? 'postgres' : 'sqlite'
  const place = await openPlace(
    values.store ?? (values.serve ? env['SLUICE_STORE'] : undefined) ?? example.store ?? needed,
  )
  try {
    const { store } = place
    if (!values.serve) return (await play(example, { store, write, only: values.only ?? '' })) ? 0 : 1
    await serve(example, { store, env, port, write })
    return 0
  } finally {
    await place.close()
  }
}

interface Values {
  readonly serve?: boolean
  readonly worker?: boolean
  readonly help?: boolean
  readonly store?: string
  readonly only?: string
  readonly port?: string
}

/** Returns what is wrong, or the options and the flags of the example that are set. */
function parse(args: readonly string[], flags: readonly string[]): string | { values: Values; set: readonly string[] } {
  const [boolean, string] = [{ type: 'boolean' }, { type: 'string' }] as const
  const own = { serve: boolean, worker: boolean, help: boolean, store: string, only: string, port: string }
  try {
    const options = { ...own, ...Object.fromEntries(flags.map((flag) => [flag, boolean])) }
    const { values } = parseArgs({ args: [...args], options })
    if (values.port !== undefined && !/^\d{1,5}$/.test(values.port))
      return `--port must be a number; got ${values.port}.`
    return { values, set: flags.filter((flag) => Object.hasOwn(values, flag)) }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
