// Serves NextUp until somebody stops it: on your own Notion, or on a stand-in beside it with a few people and tasks.
import { randomBytes } from 'node:crypto'
import { Sluice, systemClock } from 'sluice'
import { lifeLog } from './life-log.ts'
import { nextUp, notionClient } from './nextup.ts'
import { settingsFrom, type Settings } from './settings.ts'
import { NotionStandIn } from './stand-in/notion.ts'
import { serveStandIn } from './stand-in/server.ts'
import { standInSettings } from './stand-in/settings.ts'
import { actionWebhook } from './stand-in/webhooks.ts'

export interface ServeOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** On the Notion of NOTION_TOKEN. */
  readonly isReal: boolean
  readonly port: number | undefined
  readonly say: (line: string) => void
}

interface Surroundings {
  readonly settings: Settings
  /** What to try, below the address of the app. */
  readonly hints: (url: string) => readonly string[]
  readonly close: () => Promise<void>
}

export async function serve({ env, isReal, port, say }: ServeOptions): Promise<void> {
  const { settings, hints, close } = await (isReal ? ofNotion(env) : ofStandIn(env))
  // The hints below ask it by `sluice`, from this machine.
  const app = nextUp(settings, { log: { level: 'warn', format: 'pretty-lines' }, admin: { open: 'loopback' } })
  lifeLog(app, ({ what, user, more }) =>
    say(`${new Date(systemClock.now()).toISOString()}  ${what.padEnd(9)} ${user}  ${more}`),
  )
  await app.start()
  const { url } = await app.listen(port === undefined ? {} : { port })
  say(`Listens on ${url}; Ctrl-C ends it.`)
  for (const hint of hints(url)) say(hint)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await app.stop()
  await close()
}

async function ofNotion(env: ServeOptions['env']): Promise<Surroundings> {
  const made = madeUp(env)
  const unknown = settingsFrom({ NOTION_BOT_ID: 'unknown', ...env, ...made })
  const bot = env['NOTION_BOT_ID'] ?? (await botOf(unknown))
  const settings = { ...unknown, notion: { ...unknown.notion, bot } }
  const secret = made['NOTION_ACTION_SECRET'] ?? 'what NOTION_ACTION_SECRET says'
  const kept = Object.entries(made).map(([name, value]) => `${name}=${value}`)
  const hints = (url: string): readonly string[] => [
    `"Send webhook" action: ${url}/in/action with the custom header x-secret: ${secret}`,
    `Integration webhooks:  ${url}/in/notion; \`sluice sources secret notion\` shows the token to verify with`,
    `Both must be reachable from outside, by https: put a proxy or a tunnel before ${url}.`,
    ...(kept.length === 0 ? [] : [`The next time, say the same: ${kept.join(' ')}`]),
    settings.dryRun ? 'Dry run: nothing is written.' : 'Ranks and dates are written to your tasks.',
  ]
  return { settings, hints, close: async () => {} }
}

/** Secrets that nobody has said, so that a first look needs two variables and not four. */
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

async function ofStandIn(env: ServeOptions['env']): Promise<Surroundings> {
  const notion = new NotionStandIn({ clock: systemClock, latency: [60, 180] })
  const pages = ['ada', 'ben'].flatMap((name) =>
    [1, 2, 3].map((n) =>
      notion.add({ name: `${name}'s task ${n}`, assignees: [{ id: `user-${name}`, name }], importance: n }),
    ),
  )
  const server = await serveStandIn(notion)
  // Of a Notion that is not worked on, nothing counts.
  const others = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || name.startsWith('NOTION_') ? [] : [[name, value] as const],
  )
  const settings = {
    ...standInSettings(server.url, Object.fromEntries(others)),
    store: env['SLUICE_STORE'] ?? 'memory:',
  }
  const hints = (url: string): readonly string[] =>
    pages.slice(0, 1).flatMap((page) => {
      const { path, headers, body } = actionWebhook(page)
      const given = Object.entries(headers).map(([name, value]) => `  -H '${name}: ${value}' \\`)
      return [
        `The stand-in for Notion is at ${server.url}. This has ada's tasks ranked, once she has been still for ${String(settings.debounce.from)} ms:`,
        [`curl -i ${url}${path} \\`, ...given, `  -d '${body.replaceAll("'", String.raw`'\''`)}'`].join('\n'),
      ]
    })
  return { settings, hints, close: () => server.close() }
}
