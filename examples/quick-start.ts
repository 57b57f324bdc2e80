// The README's example: pushes to a repository are debounced into one build.
import { Sluice } from 'sluice'
import { github } from 'sluice/sources'

const app = new Sluice({ store: 'sqlite:sluice.db' })
app.source('github', github({ secret: process.env['GITHUB_SECRET'] ?? 'change-me' }))
app.flow('build', {
  on: 'github/push',
  key: (event) => event.subject, // one lane per repository
  debounce: { quiet: '2s', max: '30s' }, // wait for 2 s without a push, at most 30 s
  run: async ({ key, events }) => console.log(`build ${key} after ${events.length} pushes`),
})
await app.start()
const { url } = await app.listen() // port 8787, or PORT
console.log(`GitHub posts to ${url}/in/github`)
