// Edits of a user's tasks are debounced into one run per user, under a shared limit.
import { defineEvent, Sluice } from 'sluice'
import { z } from 'zod'

const edited = defineEvent('task.edited', z.object({ user: z.string() }))

const app = new Sluice({ store: process.env['SLUICE_STORE'] ?? 'memory:', log: false })
const api = app.limit('tasks-api', { rate: 3, per: '1s' })

app.flow('rank-user', {
  on: edited,
  key: (event) => event.data.user,
  debounce: { quiet: '200ms', max: '2s' },
  whileRunning: 'requeue',
  concurrency: 1,
  retry: ['250ms', '1s', '2s'],
  run: async ({ key, events }) => {
    await api.run(() => console.log(`rank ${key} after ${events.length} edits`))
  },
})

await app.start()
await app.publish(['ada', 'bob', 'ada', 'ada'].map((user) => edited({ user })))
console.log((await app.explain('rank-user', 'ada')).state)
await app.once('run.done')
await app.once('run.done')
await app.stop()
