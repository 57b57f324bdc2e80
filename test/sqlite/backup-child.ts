// Works on a file as fast as it can, and logs when each event was acknowledged. Arguments: file. Ends on a message.
import { Sluice } from '../../src/index.ts'

const [file = ''] = process.argv.slice(2)
const app = new Sluice({ store: `sqlite:${file}`, log: false })
app.flow('f', { on: 'ping', key: (event) => event.subject, window: { quiet: '50ms' }, run: () => {} })
await app.start()
const state = { stop: false, n: 0 }
process.on('message', () => (state.stop = true))

async function sender(who: number): Promise<void> {
  while (!state.stop) {
    const id = `e-${who}-${state.n++}`
    await app.publish({ type: 'ping', id, subject: `k${state.n % 100}`, data: { filling: 'x'.repeat(500) } })
    process.send?.(id)
  }
}

await Promise.all(Array.from({ length: 16 }, (_, who) => sender(who)))
await app.stop()
process.disconnect()
