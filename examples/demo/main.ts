// `npm start` serves the demo app on a real store. Simulated users send it bursts of webhooks, which it debounces and runs first
// ready, first served, under 3 calls per second.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, systemClock, type Sluice, type Store } from 'sluice'
import { checksOf } from './checks.ts'
import { runDemo } from './demo.ts'
import { optionsFrom, USAGE, type Options } from './options.ts'
import { liveScreen, plainScreen, type Screen } from './screen.ts'
import { coloured, uncoloured } from './style.ts'
import { summaryOf } from './summary.ts'
import { BY_HAND, TASKS } from './flow.ts'
import { startSubscribers } from './subscribers.ts'
import { PLAIN, tableOf, WIDTH_MAX } from './table.ts'
import type { Deliver } from './users.ts'
import { welcome } from './welcome.ts'

const { stdout, stderr, env } = process
const live = stdout.isTTY && env['TERM'] !== 'dumb'
const paint = live && (env['NO_COLOR'] ?? '') === '' ? coloured : uncoloured

/** `main` returns 0 if all checks held, 1 if a check or the store failed, and 2 if an option is wrong. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options
  try {
    options = optionsFrom(args)
  } catch (error) {
    stderr.write(`${messageOf(error)}\n\n${USAGE}`)
    return 2
  }
  if (options.help) {
    stdout.write(USAGE)
    return 0
  }
  try {
    return await onStore(options)
  } catch (error) {
    stderr.write(`${messageOf(error)}\n`)
    return 1
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function onStore(options: Options): Promise<number> {
  const folder = options.store === undefined ? mkdtempSync(join(tmpdir(), 'sluice-demo-')) : undefined
  const address = options.store ?? `sqlite:${join(folder ?? '', 'demo.db')}`
  try {
    const store = await openStore(address)
    try {
      return await show(options, store, { address, removed: folder !== undefined || address === 'memory:' })
    } finally {
      await store.close()
    }
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}

interface Place {
  readonly address: string
  readonly removed: boolean
}

async function show({ lasts, seed, play, port }: Options, store: Store, { address, removed }: Place): Promise<number> {
  const clock = systemClock
  const { durable } = await store.stats()
  const closing: (() => Promise<void>)[] = []
  const screen = live ? liveScreen(stdout, paint) : plainScreen((text) => stdout.write(text))
  try {
    const outcome = await runDemo({
      store,
      clock,
      screen,
      seed,
      lasts,
      stop: stopSignal(screen),
      play,
      serve: (app) => serve(app, { port, screen, closing }),
    })
    screen.close()
    const checks = checksOf(outcome.facts)
    const table = tableOf(outcome.last, live ? { width: Math.min(stdout.columns, WIDTH_MAX), paint } : PLAIN)
    const summary = summaryOf({ outcome, checks, store: address, durable: durable.reason, removed, seed }, paint)
    stdout.write(`\n${[...table, '', ...summary].join('\n')}\n`)
    return checks.every((check) => check.held) ? 0 : 1
  } finally {
    screen.close()
    for (const close of closing) await close()
  }
}

/** `serve` makes the app reachable, adds the subscribers, and shows the addresses. */
async function serve(app: Sluice, { port, screen, closing }: ServeOptions): Promise<Deliver> {
  const { url } = await app.listen(port === undefined ? {} : { port })
  const subscribers = await startSubscribers(app, systemClock)
  closing.push(() => subscribers.close())
  screen.welcome(welcome({ dashboard: `${url}/dashboard`, webhook: `${url}/in/${BY_HAND}` }, paint))
  return ({ body, headers }) => fetch(`${url}/in/${TASKS}`, { method: 'POST', body, headers })
}

interface ServeOptions {
  readonly port: number | undefined
  readonly screen: Screen
  /** What must be closed after the demo. */
  readonly closing: (() => Promise<void>)[]
}

/** npm passes a Ctrl-C on, so one may arrive several times. A second Ctrl-C of the user comes later than this. */
const SAME_CTRL_C = 1_000

/** Ctrl-C stops the demo with its summary, and a second one ends it at once. So does a closed output. */
function stopSignal(screen: Screen): AbortSignal {
  const stop = new AbortController()
  let first: number | undefined
  const asked = (): void => {
    first ??= systemClock.monotonic()
    if (systemClock.monotonic() - first > SAME_CTRL_C) process.exit(130)
    stop.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, asked)
  stdout.on('error', () => stop.abort())
  process.on('exit', () => screen.close())
  return stop.signal
}

process.exitCode = await main(process.argv.slice(2))
