// Two typed events in one flow: their schemas check what is published, and the type of an event narrows its data.
import { defineEvent, Sluice } from 'sluice'
import { z } from 'zod'

const edited = defineEvent('task.edited', z.object({ user: z.string(), title: z.string() }))
const due = z.iso.date().transform((text) => new Date(text))
const planned = defineEvent('task.planned', z.object({ user: z.string(), due }))

const app = new Sluice({ store: 'memory:', log: false })
app.flow('summarise', {
  on: [edited, planned],
  key: (event) => event.data.user,
  batch: '200ms',
  run: async ({ key, events }) => {
    for (const event of events) {
      if (event.type === 'task.edited') console.log(`${key} edited "${event.data.title}"`)
      else console.log(`${key} has until ${event.data.due.toUTCString()}`)
    }
  },
})

await app.start()
await app.publish([edited({ user: 'ada', title: 'Proof' }), planned({ user: 'ada', due: '2026-12-01' })])
await app.once('run.done')
await app.publish({ type: 'task.planned', data: { user: 'ada', due: 'soon' } }).catch((error: Error) => {
  console.log(error.message)
})
await app.stop()
