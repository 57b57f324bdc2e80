// Serves NextUp on your own Notion until somebody stops it.
import { randomBytes } from 'node:crypto'
import { Sluice, systemClock } from 'sluice'
import type { ServeOptions } from '../kit/serve.ts'
import { lifeLog } from './life-log.ts'
import { nextUp, notionClient } from './nextup.ts'
import { settingsFrom, type Settings } from './settings.ts'

export async function serveReal({ env, port, write }: Omit<ServeOptions, 'store'>): Promise<void> {
  const made = madeUp(env)
  const unknown = settingsFrom({ NOTION_BOT_ID: 'unknown', ...env, ...made })
  const bot = env['NOTION_BOT_ID'] ?? (await botOf(unknown))
  const settings = { ...unknown, notion: { ...unknown.notion, bot } }
  const log = settings.isLogging ? ({ level: 'warn', format: 'pretty-lines' } as const) : false
  // The command line can ask it, from this machine.
  const app = nextUp(settings, { log, admin: { open: 'loopback' } })
  if (settings.isLogging)
    lifeLog(app, ({ what, user, more }) =>
      write(`${new Date(systemClock.now()).toISOString()}  ${what.padEnd(9)} ${user}  ${more}`),
    )
  await app.start()
  const { url } = await app.listen({ port })
  write(`Listens on ${url}; Ctrl-C ends it.`)
  const secret = made['NOTION_ACTION_SECRET'] ?? 'what NOTION_ACTION_SECRET says'
  const kept = Object.entries(made).map(([name, value]) => `${name}=${value}`)
  write(`"Send webhook" action: ${url}/in/action with the custom header x-secret: ${secret}`)
  write(`Integration webhooks:  ${url}/in/notion; \`sluice sources secret notion\` shows the token to verify with`)
  write(`Both must be reachable from outside, by https: put a proxy or a tunnel before ${url}.`)
  if (kept.length > 0) write(`The next time, say the same: ${kept.join(' ')}`)
  write(settings.dryRun ? 'Dry run: nothing is written.' : 'Ranks and dates are written to your tasks.')
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await app.stop()
}

/** Generated secrets, so that a first trial needs two variables instead of four. */
function madeUp(env: ServeOptions['env']): Readonly<Record<string, string>> {
  const made: Record<string, string> = {}
  if ((env['NOTION_ACTION_SECRET'] ?? '') === '') made['NOTION_ACTION_SECRET'] = randomBytes(18).toString('base64url')
  if ((env['NOTION_VERIFICATION_TOKEN'] ?? '') === '' && (env['SLUICE_ENCRYPTION_KEY'] ?? '') === '') {
    // A token that comes by handshake is kept under it; the engine reads it by this name.
    made['SLUICE_ENCRYPTION_KEY'] = randomBytes(32).toString('base64')
    process.env['SLUICE_ENCRYPTION_KEY'] = made['SLUICE_ENCRYPTION_KEY']
  }
  return made
}

/** The app cannot be built without the answer. So another one asks, on the same store: this call is under the limit, too. */
async function botOf(settings: Settings): Promise<string> {
  const asking = new Sluice({ store: settings.store, log: false })
  try {
    return (await notionClient(asking, settings).users.me({})).id
  } finally {
    await asking.stop()
  }
}
