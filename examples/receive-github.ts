// A signed webhook from the wire to its run, and a forged one that gets nowhere.
import { createHmac } from 'node:crypto'
import { Sluice } from 'sluice'
import { github } from 'sluice/sources'

const secret = 'the one that GitHub has'
const app = new Sluice({ store: 'memory:', log: false })
app.source('github', github({ secret }))
app.flow('build', {
  on: 'github/push',
  key: (event) => event.subject,
  debounce: { quiet: '10s', maxEvents: 2 }, // due at once when two pushes wait
  run: ({ key, events }) => console.log(`build ${key} after ${events.length} pushes`),
})
await app.start()
const { url } = await app.listen({ port: 0 })

// What GitHub would send: two pushes, the second one twice, and something that is not from GitHub.
const body = JSON.stringify({ repository: { full_name: 'octo/app' } })
const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
const statuses: string[] = []
const built = app.once('run.done')
for (const [delivery, sent] of Object.entries({
  first: signature,
  second: signature,
  again: signature,
  forged: 'no',
})) {
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery === 'again' ? 'second' : delivery,
    'x-hub-signature-256': sent,
  }
  const response = await fetch(`${url}/in/github`, { method: 'POST', headers, body })
  statuses.push(`${delivery} ${response.status}`)
}
await built
console.log(statuses.join('\n'))
console.log((await app.admin.sources.refused('github'))[0]?.code)
await app.stop()
