// The app that docs/frameworks.md mounts in four frameworks.
import { Sluice } from '../../../src/index.ts'
import { github } from '../../../src/sources/index.ts'

const app = new Sluice({ store: process.env['SLUICE_STORE'] ?? 'sqlite:sluice.db', log: { level: 'error' } })

app.source('github', github({ secret: process.env['GITHUB_SECRET'] ?? '' }))
app.flow('greet', { on: 'github/push', run: ({ log }) => log.info('somebody has pushed') })

export default app
