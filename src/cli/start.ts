// `sluice start` starts the app, serves it, prints its address, and stops when it is asked to.
import type { ListenOptions } from '../http/server.ts'
import { assertProductionReady } from '../app/production-checks.ts'
import type { Sluice } from '../app/sluice.ts'
import type { LoadedConfig } from './config-file.ts'
import { escapeText, formatCount } from './output.ts'

export interface StartOptions {
  readonly configured: LoadedConfig
  /** The options of the command line, which override those of the file. */
  readonly listen: ListenOptions
  /** Whether deliveries may post to endpoints on this machine. */
  readonly allowLoopback: boolean
  /** The file in which `sluice dev` keeps a key, if there is one. */
  readonly devKeyFile?: string | undefined
  /** Whether `sluice dev` started the app. */
  readonly isDev: boolean
  readonly print: (line: string) => void
  /** Aborted when the app must stop. */
  readonly signal: AbortSignal
}

export async function startApp({
  configured,
  listen,
  allowLoopback,
  devKeyFile,
  isDev,
  print,
  signal,
}: StartOptions): Promise<void> {
  const { app, listen: ofFile } = configured
  try {
    assertProductionReady(app.productionSetup(), { allowLoopback, devKeyFile })
    if (isDev) printUntaken(app, print)
    await app.start()
    const { url, sources, dashboard } = await app.listen({ ...ofFile, ...listen })
    print(`sluice listens on ${url}`)
    const width = Math.max(0, ...sources.map(({ name }) => name.length))
    for (const { name, scheme, path } of sources) print(`  ${name.padEnd(width)}  ${url}${path}  (${scheme})`)
    if (sources.length === 0) print("  no sources yet; add one with app.source('name', …) in the configuration")
    if (dashboard !== undefined) print(`  dashboard  ${dashboard}`)
    print(`  health  ${url}/healthz  ready  ${url}/readyz`)
    if (!isDev && (await app.admin.keys.list()).length === 0) print(NO_KEY)
    const { unreadable } = await app.admin.encryption.state()
    if (unreadable.length > 0) print(describeUnreadable(unreadable))
    await waitForAbort(signal)
    print('sluice is stopping and waits for its runs')
  } finally {
    await app.stop()
  }
}

/** On PostgreSQL, another process can open the store meanwhile. */
const NO_KEY =
  '  the admin API has no key yet; to create one, run sluice keys create <name> --role=operate (on SQLite, before sluice start)'

/** With a wrong key, the app receives and runs, but what is encrypted under the old key fails. So it starts, and says so. */
function describeUnreadable([first = '', ...others]: readonly string[]): string {
  const which = others.length === 0 ? first : `${first} and ${formatCount(others.length, 'other')}`
  return escapeText(`  WARNING: no encryption key reads ${which}; sluice doctor says what to do`)
}

/** During development, shows why no flow took an event, at every log level. */
function printUntaken(app: Sluice, say: StartOptions['print']): void {
  for (const name of ['event.skipped', 'event.unwanted'] as const) {
    app.on(name, ({ event, source, type, text }) => say(escapeText(`event ${event} (${source}/${type}): ${text}`)))
  }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
