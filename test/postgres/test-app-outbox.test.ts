// `testApp` on PostgreSQL routes what the test publishes in its transactions.
import pg from 'pg'
import { expect, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { testApp } from '../../src/testing/index.ts'
import { startServer } from './server.ts'

test('on a server without fsync and with outbox, an event runs within a virtual second after its transaction is committed', async () => {
  const server = await startServer({ version: 18, settings: { fsync: 'off' } })
  const app = new Sluice({ store: 'memory:', log: false })
  app.flow('note', { on: 'order.*', run: () => {} })
  const t = await testApp(app, { store: server.url, outbox: true })
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    await client.query('begin')
    await client.query(`select sluice.publish('order.placed', '{"id": 7}')`)
    await t.advance('1s')
    expect(t.runs).toEqual([])
    await client.query('commit')
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ flow: 'note', events: [{ id: 7 }], ending: 'done' }])
  } finally {
    await client.end()
    await t.stop()
    await server.stop()
  }
})
