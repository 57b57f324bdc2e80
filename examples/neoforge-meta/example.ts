// NeoForge Meta as the kit plays, serves and tests it, on stand-ins for the repositories and for three subscribers.
import type { Example } from '../kit/example.ts'
import { schemaNames } from '../kit/own-schema.ts'
import type { Stage } from '../kit/stage.ts'
import { SCHEMA } from './data/versions-table.ts'
import { attempts, batches, health, rate, secrets, timeout } from './scenarios/deliveries.ts'
import { brokenRepository, discovery, plainSql } from './scenarios/discovery.ts'
import { challenge, httpsOnly, registrationLimit } from './scenarios/registrations.ts'
import { beginning, defaultStart, replay } from './scenarios/history.ts'
import { api, filters, hardCase, trigger } from './scenarios/subscribers.ts'
import { transformation } from './scenarios/transformations.ts'
import { calm, makeWorld, newUrl, SHORT_TIMES, type World } from './scenarios/world.ts'
import { SECRET } from './stand-in/subscriber.ts'
import { build } from './sluice.config.ts'

/** Two commands: the first begins a transaction and commits it a minute later, the second one commits meanwhile. */
function hardCaseCommands({ store }: Stage<World>): readonly string[] {
  if (schemaNames(store, SCHEMA).own !== SCHEMA) return ['The commands of the hard case need a store without ?schema.']
  const deprecate = (version: string, reason: string): string =>
    `psql '${store}' -v component=NEOFORGE -v version=${version} -v reason='${reason}'`
  const file = '-f examples/neoforge-meta/sql/deprecate.sql'
  return [
    '',
    'The hard case: run the first command, and the second one within a minute. What began first arrives last, and arrives.',
    `  ${deprecate('21.0.1', 'began first')} -c begin ${file} -c 'select pg_sleep(60)' -c commit`,
    `  ${deprecate('21.0.2', 'committed first')} ${file}`,
    '',
  ]
}

export const neoforgeMeta: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build,
  world: makeWorld,
  reset: calm,
  store: 'postgres',
  outbox: true,
  env: SHORT_TIMES,
  options: { lease: '6s', heartbeat: '2s' },
  scenarios: {
    'Discovery finds what is new, changed, and withdrawn': discovery,
    'A repository that fails deprecates nothing': brokenRepository,
    'The row and its event are one transaction, also in plain SQL': plainSql,
    'The subscriber API of the design': api,
    'A trigger ends the open windows': trigger,
    'Filters by type and by component': filters,
    'A new subscriber starts at the beginning, from now, or from a time': beginning,
    'The beginning is the default': defaultStart,
    'A subscriber asks for its past again': replay,
    'Batches of at most 1,000 events': batches,
    'Five attempts, a dead letter, and a breaker': attempts,
    'A subscriber that does not answer': timeout,
    'What began first and was committed last arrives': hardCase,
    'A payload of its own': transformation,
    'At most so many POSTs to a subscriber': rate,
    'A subscriber proves that the address is its own': challenge,
    'Only https, and only the public internet': httpsOnly,
    'The health of the webhooks': health,
    'Secrets are encrypted': secrets,
    'A limit of registrations': registrationLimit,
  },
  narrate: (app, tell) => {
    app.on('run.retry', ({ flow, error }) => {
      if (flow.startsWith('every/')) tell('look', error)
    })
  },
  beforeServing: async (stage) => {
    stage.world.repositories.releaseNeoForge(20)
    stage.world.repositories.releaseMinecraft()
    // Not over the API: as long as there is no key, calls from this machine need none.
    for (const who of ['good', 'flaky', 'dead'] as const)
      await stage.app.endpoints.create({ name: who, url: newUrl(stage, who), secret: SECRET })
  },
  hints: hardCaseCommands,
}
