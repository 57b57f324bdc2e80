// `npm start`: simulated users' bursts, debounced and run first ready first served under 3 calls a second, on a real store.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, systemClock } from '../index.ts'
import { checksOf } from './checks.ts'
import { runDemo } from './demo.ts'
import { optionsFrom, USAGE, type Options } from './options.ts'
import { liveScreen, plainScreen, type Screen } from './screen.ts'
import { coloured, uncoloured } from './style.ts'
import { summaryOf } from './summary.ts'
import { tableOf } from './table.ts'

const { stdout, env } = process
const live = stdout.isTTY && env['TERM'] !== 'dumb'
const colours = live && (env['NO_COLOR'] ?? '') === ''

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = optionsFrom(args)
    if (!options.help) return await onStore(options)
    stdout.write(USAGE)
    return 0
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 2
  }
}

async function onStore(options: Options): Promise<number> {
  if (options.store !== undefined) return show(options, options.store)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  try {
    return await show(options, `sqlite:${join(folder, 'demo.db')}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function show({ lasts, seed }: Options, address: string): Promise<number> {
  const store = await openStore(address)
  const screen = live ? liveScreen(stdout, colours) : plainScreen((text) => void stdout.write(text))
  try {
    const stop = stopSignal(screen)
    const { durable } = await store.stats()
    const process_ = `demo-${process.pid}-${systemClock.now()}`
    const outcome = await runDemo({ store, clock: systemClock, screen, seed, process: process_, lasts, stop })
    const checks = checksOf(outcome.facts)
    screen.close()
    const paint = colours ? coloured : uncoloured
    const table = tableOf(outcome.last, { width: Math.min(stdout.columns ?? 100, 120), paint })
    const summary = summaryOf({ outcome, checks, store: address, durable: durable.because, seed }, paint)
    stdout.write(`\n${[...table, '', ...summary].join('\n')}\n`)
    return checks.every((check) => check.held) ? 0 : 1
  } finally {
    screen.close()
    await store.close()
  }
}

/** Ctrl-C stops with the summary; a second one, or a reader that is gone, at once. */
function stopSignal(screen: Screen): AbortSignal {
  const stop = new AbortController()
  const asked = (): void => {
    if (stop.signal.aborted) process.exit(130)
    stop.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, asked)
  stdout.on('error', () => stop.abort())
  process.on('exit', () => screen.close())
  return stop.signal
}
