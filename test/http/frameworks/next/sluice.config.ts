// docs/frameworks.md: the app inside Next.js.
import { Sluice } from '../../../../src/index.ts'
import { github } from '../../../../src/sources/index.ts'

function build(): Sluice {
  const app = new Sluice({ store: process.env['SLUICE_STORE'] ?? 'sqlite:sluice.db', log: { level: 'error' } })
  app.source('github', github({ secret: process.env['GITHUB_SECRET'] }))
  app.flow('greet', { on: 'github/push', run: ({ log }) => log.info('somebody has pushed') })
  return app
}

// Next.js loads this file several times in one process: these copies share one app.
const shared = globalThis as typeof globalThis & { sluice?: Sluice }
const app = (shared.sluice ??= build())

export default app
