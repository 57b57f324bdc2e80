// `backfillCommand` asks the app for the past of a person, and shows a bar that follows the data as it arrives.
import { parseArgs } from 'node:util'
import type { Clock, Millis } from 'sluice'
import { Progress, type ProgressOptions } from '../../src/cli/progress.ts'
import type { Env } from '../kit/example.ts'
import { DAYS_MAX } from './domain/backfill.ts'
import type { BackfillProgress } from './flows/backfill.ts'

export interface CommandSurroundings {
  readonly env: Env
  readonly clock: Clock
  readonly stderr: ProgressOptions['stream']
  /** Aborts when the person at the keyboard does not want to wait any longer. */
  readonly signal: AbortSignal
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
}

const USAGE = `node examples/welltrack/backfill.ts <profile> [options]
  --days=N         how many days of the past, 1 to ${DAYS_MAX} (default ${DAYS_MAX})
  --id=TEXT        the id of the backfill (default <profile>-<days>); the same id continues it
  --url=URL        the app (default SLUICE_URL, or http://127.0.0.1:8787)
  --patience=N     end when nothing has arrived for N minutes (default 60)
SLUICE_KEY must be an API key with the role operate.
`
const EVERY: Millis = 1_000
const MINUTE: Millis = 60_000

interface Asked {
  readonly profileId: string
  readonly days: number
  readonly id: string
  readonly url: string
  readonly patience: Millis
}

/** A `Failure` ends the command with a text for people. */
class Failure extends Error {
  /** It may be over soon, e.g. when the app is started again. */
  readonly mayPass: boolean

  constructor(message: string, { mayPass = false } = {}) {
    super(message)
    this.mayPass = mayPass
  }
}

/** Returns the exit code. 0: all has arrived, or nothing more comes. 1: a part was refused or has failed. 2: wrong arguments. 130: interrupted. */
export async function backfillCommand(args: readonly string[], at: CommandSurroundings): Promise<number> {
  const asked = parse(args, at.env)
  if (typeof asked === 'string') {
    at.stderr.write(`${asked}\n${USAGE}`)
    return 2
  }
  try {
    const { id, profileId, days } = asked
    const begun = await call(at, asked, '/backfills', { id, profileId, days })
    return await follow(begun, asked, at)
  } catch (error) {
    if (at.signal.aborted) {
      at.stderr.write('\nGarmin goes on sending. The same command follows it again.\n')
      return 130
    }
    if (!(error instanceof Failure)) throw error
    at.stderr.write(`${error.message}\n`)
    return 1
  }
}

/** Returns what is wrong with the arguments, or what they ask for. */
function parse(args: readonly string[], env: Env): Asked | string {
  const string = { type: 'string' } as const
  try {
    const options = { days: string, id: string, url: string, patience: string }
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const [profileId, ...others] = positionals
    if (profileId === undefined || others.length > 0) return 'Name one profile.'
    const days = Number(values.days ?? DAYS_MAX)
    if (!Number.isInteger(days) || days < 1 || days > DAYS_MAX)
      return `--days must be a whole number from 1 to ${DAYS_MAX}; got ${values.days}.`
    const minutes = Number(values.patience ?? 60)
    if (!(minutes > 0)) return `--patience must be a number of minutes above 0; got ${values.patience}.`
    const url = (values.url ?? env['SLUICE_URL'] ?? 'http://127.0.0.1:8787').replace(/\/$/, '')
    return { profileId, days, id: values.id ?? `${profileId}-${days}`, url, patience: minutes * MINUTE }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function follow(begun: BackfillProgress, asked: Asked, at: CommandSurroundings): Promise<number> {
  const { clock, stderr } = at
  const barOf = ({ days: total, arrived: from }: BackfillProgress): Progress =>
    new Progress({ stream: stderr, clock, what: 'days arrived', total, from })
  let [now, bar, changed] = [begun, barOf(begun), clock.monotonic()]
  bar.update(now.arrived)
  while (!isOver(now) && clock.monotonic() - changed < asked.patience) {
    await sleep(at)
    const next = await call(at, asked, `/backfills/${encodeURIComponent(asked.id)}`).catch((error: unknown) => {
      if (error instanceof Failure && error.mayPass) return now
      throw error
    })
    // What is refused does not arrive.
    if (next.days !== now.days) bar = barOf(next)
    if (next.arrived !== now.arrived || next.asked !== now.asked) changed = clock.monotonic()
    now = next
    bar.update(now.arrived)
  }
  bar.end()
  for (const reason of now.reasons) stderr.write(`${reason}\n`)
  if (!isOver(now))
    stderr.write(
      `Nothing has arrived for ${asked.patience / MINUTE} minutes. Days without data never arrive. ` +
        'The same command goes on from here.\n',
    )
  return now.refused + now.failed > 0 ? 1 : 0
}

/** Whatever was asked for has arrived, and nothing is left to ask for. */
function isOver({ parts, asked, refused, failed, days, arrived }: BackfillProgress): boolean {
  return asked + refused + failed === parts && arrived >= days
}

async function call(
  { fetch, env, signal }: CommandSurroundings,
  { url }: Asked,
  path: string,
  body?: object,
): Promise<BackfillProgress> {
  const headers = { authorization: `Bearer ${env['SLUICE_KEY'] ?? ''}`, 'content-type': 'application/json' }
  const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const init = { headers, signal, ...post }
  const response = await fetch(`${url}${path}`, init).catch((error: unknown) => {
    signal.throwIfAborted()
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(`${url} cannot be reached: ${why}`, { mayPass: true })
  })
  const text = await response.text()
  if (response.ok) return JSON.parse(text) as BackfillProgress
  if (response.status === 401 || response.status === 403)
    throw new Failure('The app rejects the key. SLUICE_KEY must be an API key with the role operate.')
  const mayPass = response.status >= 500 || response.status === 429
  throw new Failure(`The app answered ${response.status}: ${text.slice(0, 500)}`, { mayPass })
}

function sleep({ clock, signal }: CommandSurroundings): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const stop = clock.after(EVERY, resolve)
    signal.addEventListener('abort', () => (stop(), reject(signal.reason as Error)), { once: true })
  })
}
