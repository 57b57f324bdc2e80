// NextUp as the kit plays, serves and tests it, on the stand-in for Notion.
import type { Example, Scenario } from '../kit/example.ts'
import { Lag } from '../kit/lag.ts'
import { lifeLog } from './life-log.ts'
import { nextUp } from './nextup.ts'
import { nameOf, nextUpStage, type World } from './scenarios/stage.ts'
import { overall, SCENARIOS } from './scenarios/scenarios.ts'
import { serveReal } from './serve.ts'
import { NotionStandIn } from './stand-in/notion.ts'
import { standInSettings } from './stand-in/settings.ts'
import { actionWebhook } from './stand-in/webhooks.ts'

/** Short enough that windows close while one looks on. */
const WINDOWS = { from: '2s', to: '12s', page: '1s' } as const

const scenarios = SCENARIOS.map(({ title, play }): [string, Scenario<World>] => [
  title,
  async (stage) => {
    for (const { says, held } of await play(nextUpStage(stage))) stage.check(says, held)
  },
])

export const nextUpExample: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build: ({ store, env, clock, options, url }) => {
    const settings = standInSettings(url('notion'), withoutNotion(env))
    const debounce = env['PLAY'] === 'yes' && env['DEBOUNCE_MS'] === undefined ? WINDOWS : settings.debounce
    return nextUp({ ...settings, store, debounce, now: () => clock.now() }, options)
  },
  world: ({ clock, serve }) => {
    const notion = new NotionStandIn({ clock, latency: [60, 180] })
    serve('notion', notion.fetch)
    return { notion, lag: new Lag(), figures: new Map(), tellsIntegration: false }
  },
  env: { PLAY: 'yes' },
  options: { lease: '6s', heartbeat: '2s', shutdownTimeout: '5s' },
  scenarios: Object.fromEntries(scenarios),
  overall: async (stage) => {
    const own = nextUpStage(stage)
    for (const { says, held } of overall(own)) stage.check(says, held)
    await own.keepFigures()
    for (const [name, value] of stage.world.figures) stage.tell('figures', `${name}: ${Math.round(value * 10) / 10}`)
    stage.world.lag.stop()
  },
  // Nobody has any task.
  reset: ({ notion }) => {
    for (const { id } of notion.pages.values()) notion.trash(id)
  },
  narrate: (app, tell) =>
    lifeLog(app, ({ what, user, more }) => {
      // That is what the next line says as well.
      if (what !== 'enqueued') tell(nameOf(user), `${what}: ${more}`)
    }),
  hints: ({ world, address }) => hints(world.notion, address),
  flags: { 'dry-run': { DRY_RUN: '1' } },
  real: (env) => ((env['NOTION_TOKEN'] ?? '') === '' ? undefined : serveReal),
}

/** Of a Notion that is not worked on, nothing counts. */
function withoutNotion(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('NOTION_') ? [] : [[name, value] as const],
    ),
  )
}

/** A few people and tasks, and what has them ranked. */
function hints(notion: NotionStandIn, address: string): readonly string[] {
  const pages = ['ada', 'ben'].flatMap((name) =>
    [1, 2, 3].map((n) =>
      notion.add({ name: `${name}'s task ${n}`, assignees: [{ id: `user-${name}`, name }], importance: n }),
    ),
  )
  return pages.slice(0, 1).flatMap((page) => {
    const { path, headers, body } = actionWebhook(page)
    const given = Object.entries(headers).map(([name, value]) => `  -H '${name}: ${value}' \\`)
    return [
      "This has ada's tasks ranked, once she has been still:",
      [`curl -i ${address}${path} \\`, ...given, `  -d '${body.replaceAll("'", String.raw`'\''`)}'`].join('\n'),
    ]
  })
}
