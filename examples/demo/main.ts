// `npm start`: a server on a real store; with --play simulated users send it bursts of webhooks, which are debounced and run
// first ready first served under 3 calls a second.
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
import type { Deliver } from './users.ts'
import { asCommand, taskEdited } from './webhooks.ts'
import { PLAIN, tableOf, WIDTH_MAX } from './table.ts'

const { stdout, stderr, env } = process
const live = stdout.isTTY && env['TERM'] !== 'dumb'
const paint = live && (env['NO_COLOR'] ?? '') === '' ? coloured : uncoloured

/** 0: shown, and all checks held. 1: a check or the store failed. 2: the options make no sense. */
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
      serve: (app) => serve(app, port),
    })
    screen.close()
    const checks = checksOf(outcome.facts)
    const table = tableOf(outcome.last, live ? { width: Math.min(stdout.columns, WIDTH_MAX), paint } : PLAIN)
    const summary = summaryOf({ outcome, checks, store: address, durable: durable.reason, removed, seed }, paint)
    stdout.write(`\n${[...table, '', ...summary].join('\n')}\n`)
    return checks.every((check) => check.held) ? 0 : 1
  } finally {
    screen.close()
  }
}

/** Says where everything is, and how to send it something. */
async function serve(app: Sluice, port: number | undefined): Promise<Deliver> {
  const { url, sources } = await app.listen(port === undefined ? {} : { port })
  const address = `${url}${sources[0]?.path ?? ''}`
  const example = asCommand(address, taskEdited('you', 'msg_by_hand', systemClock.now()))
  stdout.write(` Listens on ${url}\n webhooks  ${address}\n health    ${url}/healthz\n ready     ${url}/readyz\n\n`)
  stdout.write(` Send one (good for five minutes), and see it run after two quiet seconds:\n${example}\n\n`)
  return ({ body, headers }) => fetch(address, { method: 'POST', body, headers })
}

/** One Ctrl-C may arrive several times, handed on by those who started us; a second one is later than this. */
const SAME_CTRL_C = 1_000

/** Ctrl-C stops with the summary, a second one at once. A reader that went away stops it too. */
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
