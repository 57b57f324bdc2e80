// The guides in docs/coming-from/ promise what their examples do: every payload, one run per key, and nothing of a rollback.
import pg from 'pg'
import { testApp } from 'sluice/testing'
import { expect, it, onTestFinished, vi } from 'vitest'
import * as bullmq from '../bullmq.ts'
import * as express from '../express.ts'
import * as pgBoss from '../pg-boss.ts'
import { openPlace } from '../../kit/postgres.ts'

it('the app for those who come from Express builds once, with every push of the pause', async () => {
  vi.stubEnv('GITHUB_SECRET', 'a secret for the test')
  onTestFinished(() => void vi.unstubAllEnvs())
  const built: unknown[] = []
  const t = await testApp(express.createApp(async (...build) => void built.push(build)))
  onTestFinished(() => t.stop())
  for (const after of ['a1', 'b2']) {
    await t.send({ source: 'github', type: 'push', data: { after, repository: { full_name: 'octo/app' } } })
    await t.advance('1s')
  }
  expect(built).toEqual([])
  await t.advance('1s')
  expect(built).toEqual([['octo/app', ['a1', 'b2']]])
})

it('the app for those who come from BullMQ ranks once per user, with every edit, and again after an error', async () => {
  const ranked: unknown[] = []
  const app = bullmq.createApp(async (user, edited) => void ranked.push([user, edited]))
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  t.fail('rank', new Error('the API is down'))
  await bullmq.onTaskEdited(app, 'ada', 'Write')
  await t.advance('9s')
  await bullmq.onTaskEdited(app, 'ada', 'Proof')
  await t.advance('10s')
  expect(ranked).toEqual([])
  await t.advance('2s')
  expect(ranked).toEqual([['ada', ['Write', 'Proof']]])
})

it('the app for those who come from pg-boss sends one summary with each committed order, and nothing of a rollback', async () => {
  const place = await openPlace(process.env['DATABASE_URL'] ?? 'postgres')
  onTestFinished(() => place.close())
  const pool = new pg.Pool({ connectionString: place.store })
  onTestFinished(() => pool.end())
  await pool.query('create table orders (customer text primary key, total int not null)')
  onTestFinished(async () => void (await pool.query('drop table orders')))

  const sent: [customer: string, totals: readonly number[]][] = []
  const both = Promise.withResolvers<void>()
  const separator = place.store.includes('?') ? '&' : '?'
  const store = `${place.store}${separator}schema=coming_from_${process.pid}`
  const app = pgBoss.createApp(store, async (...summary) => {
    if (sent.push(summary) === 2) both.resolve()
  })
  const t = await testApp(app, { store })
  onTestFinished(() => t.stop())
  await pgBoss.placeOrder(app, pool, 'ada', 5)
  await pgBoss.placeOrder(app, pool, 'bob', 7)
  await expect(pgBoss.placeOrder(app, pool, 'ada', 9)).rejects.toThrow('duplicate key')
  await t.until(both.promise)
  expect(Object.fromEntries(sent)).toEqual({ ada: [5], bob: [7] })
})
