// Tests `sluice explain` on PostgreSQL without a server on the usual port: the command reads the store, in which workers
// register the flows they serve.
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { folderWith, run, serve } from '../cli/commands-rig.ts'

const SRC = new URL('../../src/', import.meta.url)

/** The address with `?schema=`, as a user writes it. */
const config = (url: string): string => `
import { openStore, Sluice } from '${new URL('index.ts', SRC).href}'
const store = await openStore('${url}', { acceptLoss: true })
const app = new Sluice({ store, log: false })
app.flow('waits', { on: 'late', key: (event) => event.subject, window: { quiet: '1h' }, run: () => {} })
app.route('POST', '/publish', async () => Response.json(await app.publish({ type: 'late', subject: 'ada' })))
export default app
`

let made = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  test('explain knows a worker on another port, and keys are created beside it', async () => {
    const schema = `explain_${process.pid}_${made++}`
    const folder = folderWith({
      'sluice.config.ts': config(`${url}${url.includes('?') ? '&' : '?'}schema=${schema}`),
    })
    onTestFinished(async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query(`drop schema ${schema} cascade`)
      await client.end()
    })
    const alone = await run(folder, ['explain', 'waits', 'ada'])
    expect(alone.stdout).toContain('no process serves this flow')
    const worker = await serve(folder)
    await fetch(`${worker.url}/publish`, { method: 'POST' })
    const beside = await run(folder, ['explain', 'waits', 'ada'])
    expect(beside.stdout).toContain('waits for its window with 1 event')
    expect(beside.stdout).not.toContain('no process serves')
    // Without a key, the server rejects every request. A user who can open the store can create a key there while the server
    // runs.
    const env = { PORT: new URL(worker.url).port }
    const refused = await run(folder, ['flows'], { env })
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('KEY_MISSING')])
    const key = await run(folder, ['keys', 'create', 'ada', '--role=operate'], { env })
    expect(key.stdout).toMatch(/^slk_/)
    const asked = await run(folder, ['flows', '--json'], { env: { ...env, SLUICE_KEY: key.stdout.trim() } })
    expect(asked.code).toBe(0)
    expect(await worker.program.stop()).toBe(0)
  })
})
