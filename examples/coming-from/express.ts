// Quoted by docs/coming-from/express.md: a build per repository, once its pushes have stopped.
import type { PushEvent } from '@octokit/webhooks-types'
import { defineEvent, Sluice } from 'sluice'
import { github } from 'sluice/sources'

export type Build = (repository: string, commits: readonly string[]) => Promise<void>

const pushed = defineEvent<PushEvent>('github/push')

export function createApp(build: Build): Sluice {
  const app = new Sluice({ store: 'sqlite:sluice.db' })
  app.source('github', github({ secret: process.env['GITHUB_SECRET'] }))
  app.flow('build', {
    on: pushed,
    key: (event) => event.data.repository.full_name,
    debounce: { quiet: '2s', max: '30s' },
    run: ({ key, events }) =>
      build(
        key,
        events.map((event) => event.data.after),
      ),
  })
  return app
}
