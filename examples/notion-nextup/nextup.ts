// Notion NextUp: ranks every user's tasks after each edit. Users are served one at a time, first ready first served, each once
// their edits have paused. All calls to Notion are under one limit.
import { Client, LogLevel } from '@notionhq/client'
import { Sluice, type SluiceOptions } from 'sluice'
import { notion, notionAction } from 'sluice/sources'
import { readPage } from './domain/notion-tasks.ts'
import { rankUser } from './domain/rank-user.ts'
import { changesOf, pageToRead, taskChanged, userOfChange, usersOfAction } from './domain/webhooks.ts'
import type { ClientSettings, Settings } from './settings.ts'

const CALLS_PER_TURN = 30
/** Longer than the pauses that Notion asks for, of which those of a workspace exceed a minute. */
const TIMEOUT = '10m'
/** Of one call, its wait for a slot included: the run's own timeout comes first, and ends that wait. */
const CALL_TIMEOUT_MS = 660_000

/** A client all of whose calls are under the app's one limit. */
export function notionClient(app: Sluice, { notion: { token, url }, rate, burst }: ClientSettings): Client {
  // 429 and 529 pause it for everybody, and the call that was refused is made again when the pause is over.
  const api = app.limit('notion-api', { rate, per: '1s', retries: 3, ...(burst === undefined ? {} : { burst }) })
  // Retries of its own would know nothing of the limit, and its timeout counts the wait for a slot.
  const alone = { retry: false, timeoutMs: CALL_TIMEOUT_MS, logLevel: LogLevel.ERROR } as const
  return new Client({ auth: token, baseUrl: url, fetch: api.fetch, ...alone })
}

export function nextUp(settings: Settings, options: Omit<SluiceOptions, 'store'> = {}): Sluice {
  const { store, debounce, verificationToken: secret } = settings
  const app = new Sluice({ ...options, store })
  const client = notionClient(app, settings)
  const { dataSource, bot } = settings.notion
  const audience = { dataSource, bot, only: settings.only }

  app.source('action', notionAction({ header: 'x-secret', secret: settings.actionSecret }))
  app.source('notion', notion(secret === undefined ? {} : { secret }))

  // An integration's webhook has only ids: the page says whose task it is.
  app.flow('read-page', {
    on: 'notion/page.*',
    key: (event) => pageToRead(event, audience),
    window: { quiet: debounce.page },
    whileRunning: 'requeue',
    concurrency: 1,
    retry: settings.backoff,
    timeout: TIMEOUT,
    run: async (run) => {
      const changes = changesOf(await readPage(client, run.key), audience)
      if (changes.length === 0) run.count('without-assignee')
      run.publish(changes)
    },
  })

  app.flow('rank-user', {
    on: ['action/page.updated', taskChanged.type],
    key: (event) => (event.type === taskChanged.type ? userOfChange : usersOfAction)(event, audience),
    // Longer when Notion refuses or the line grows; back by half each minute.
    window: { quiet: { from: debounce.from, to: debounce.to }, max: '5m' },
    whileRunning: 'requeue',
    concurrency: 1,
    retry: settings.backoff,
    timeout: TIMEOUT,
    run: (run) => rankUser(run, { ...settings, notion: client, dataSource, callsPerTurn: CALLS_PER_TURN }),
  })
  return app
}
