#!/usr/bin/env node
// The command line. How it ends is in exit.ts: 0 done, 1 it failed, 2 it was asked something it does not know.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { ListenOptions } from '../http/server.ts'
import { configFile } from './config-file.ts'
import { dev } from './dev.ts'
import { allCommands, isCommand, runCommand } from './run-command.ts'
import { start } from './start.ts'

const USAGE = `sluice <command> [options]

  dev      run the app of sluice.config.ts, and again whenever a file changes
  start    run the app of sluice.config.ts
  version  say which one this is

  --config=FILE       another file than ./sluice.config.ts
  --port=N            8787, or PORT of the environment
  --host=HOST         127.0.0.1; 0.0.0.0 lets the world in
  --trust-proxy=NET   a proxy whose forwarded headers are believed, as 10.0.0.0/8;
                      once for each of them

Each goes before what the file exports as listen: { port, host, tls, trustProxy }.

What operates an app, by its running server where there is one; sluice <command> --help says more:

${allCommands()}
`

const OPTIONS = {
  config: { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  'trust-proxy': { type: 'string', multiple: true },
  help: { type: 'boolean', default: false },
} as const

interface Values {
  readonly port?: string | undefined
  readonly host?: string | undefined
  readonly 'trust-proxy'?: readonly string[] | undefined
}

async function main(args: readonly string[]): Promise<number> {
  if (isCommand(args[0] ?? '')) return runCommand(args)
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  const [command = 'help', ...more] = positionals
  if (values.help || command === 'help') return say(USAGE, 0)
  if (command === 'version') return say(versionOf(), 0)
  if (more.length > 0 || (command !== 'dev' && command !== 'start')) return say(USAGE, 2)
  const file = configFile(process.cwd(), values.config)
  const signal = stopSignal()
  if (command === 'start') {
    await start({ file, listen: listenOf(values), say: tell, signal })
    return 0
  }
  const options = Object.entries({ config: file, ...values }).flatMap(([name, value]) =>
    typeof value === 'boolean' ? [] : [value].flat().map((one) => `--${name}=${one}`),
  )
  await dev({ args: options, main: fileURLToPath(import.meta.url), folder: process.cwd(), say: tell, signal })
  return 0
}

function listenOf({ port, host, 'trust-proxy': trustProxy }: Values): ListenOptions {
  return {
    ...(port !== undefined && { port: Number(port) }),
    ...(host !== undefined && { host }),
    ...(trustProxy !== undefined && { trustProxy }),
  }
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`)
}

function say(text: string, code: number): number {
  const out = code === 0 ? process.stdout : process.stderr
  out.write(text.endsWith('\n') ? text : `${text}\n`)
  return code
}

function versionOf(): string {
  const url = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }).version
}

/**
 * The first one asks it to stop; with the same one again nobody wants to wait any longer. Another one is no second: under
 * `sluice dev` Ctrl-C comes from the terminal, and SIGTERM from the process that watches.
 */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  const seen = new Set<string>()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (seen.has(name)) process.exit(130)
      seen.add(name)
      stop.abort()
    })
  }
  return stop.signal
}

main(process.argv.slice(2)).then(
  (code) => void (process.exitCode = code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = error instanceof TypeError && 'code' in error ? 2 : 1
  },
)
