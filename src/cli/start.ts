// `sluice start`: loads the app, begins its work, serves it, says where, and stops when it is told to.
import type { ListenOptions } from '../http/server.ts'
import { mustBeFit } from '../set-up.ts'
import { configured } from './config-file.ts'

export interface StartParts {
  readonly file: string
  /** What was asked for on the command line: it goes before what the file says. */
  readonly listen: ListenOptions
  /** Endpoints on this machine, in so many words. */
  readonly allowLoopback: boolean
  readonly say: (line: string) => void
  /** Aborted when it is to stop. */
  readonly signal: AbortSignal
}

export async function start({ file, listen, allowLoopback, say, signal }: StartParts): Promise<void> {
  const { app, listen: ofFile } = await configured(file)
  try {
    mustBeFit(app.setUp(), { allowLoopback })
    await app.start()
    const { url, sources } = await app.listen({ ...ofFile, ...listen })
    say(`sluice listens on ${url}`)
    const width = Math.max(0, ...sources.map(({ name }) => name.length))
    for (const { name, scheme, path } of sources) say(`  ${name.padEnd(width)}  ${url}${path}  (${scheme})`)
    if (sources.length === 0) say("  no sources yet: app.source('name', …) in the configuration adds one")
    say(`  health  ${url}/healthz  ready  ${url}/readyz`)
    await aborted(signal)
    say('sluice stops: what runs is given time to end')
  } finally {
    await app.stop()
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
