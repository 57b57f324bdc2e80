// `sluice/run.dead` in deliveries: it goes to the endpoints whose filter names its source, and to no others.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { PermanentError, Sluice } from '../../src/index.ts'
import { subscriber } from './subscriber.ts'

const ALL = ['**', '*', 'run.*', 'sluice/run.dead']

async function started(on: readonly string[]): Promise<Sluice> {
  const app = new Sluice({
    store: 'memory:',
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
  })
  app.delivery('all', { on: [...on] }).flow('fails', {
    on: 'ping',
    key: () => 'ada',
    run: () => {
      throw new PermanentError('No such user.')
    },
  })
  await app.start()
  onTestFinished(() => app.stop())
  return app
}

it('a delivery posts it to the endpoints of its tenant whose filter names the source', async () => {
  const [asked, everything, slashless, stranger] = await Promise.all([
    subscriber(),
    subscriber(),
    subscriber(),
    subscriber(),
  ])
  const app = await started(ALL)
  await app.endpoints.create({ url: asked.url, tenant: 'acme', eventFilter: ['sluice/run.dead'] })
  await app.endpoints.create({ url: everything.url, tenant: 'acme' })
  await app.endpoints.create({ url: slashless.url, tenant: 'acme', eventFilter: ['*', 'run.*', 'run.dead', 'last'] })
  await app.endpoints.create({ url: stranger.url, tenant: 'other', eventFilter: ['sluice/*', 'last'] })
  await app.publish({ id: 'a', type: 'ping', tenant: 'acme' })
  await asked.reached(1)
  expect(JSON.parse(asked.got[0]?.body ?? '')).toMatchObject({
    data: { events: [{ type: 'run.dead', source: 'sluice', subject: 'ada', data: { flow: 'fails', key: 'ada' } }] },
  })
  await app.publish([
    { id: 'b', type: 'last', tenant: 'acme' },
    { id: 'c', type: 'last', tenant: 'other' },
  ])
  await expect.poll(() => everything.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  await expect.poll(() => slashless.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  await expect.poll(() => stranger.got.flatMap(({ ids }) => ids)).toEqual(['c'])
})

it('a delivery whose globs have no slash does not take it, so it is not stored', async () => {
  const asked = await subscriber()
  const app = await started(['**', '*', 'run.*', 'run.dead'])
  await app.endpoints.create({ url: asked.url, eventFilter: ['sluice/run.dead', 'last'] })
  const dead = app.once('run.dead')
  await app.publish({ id: 'a', type: 'ping' })
  await dead
  await app.publish({ id: 'b', type: 'last' })
  await expect.poll(() => asked.got.flatMap(({ ids }) => ids)).toEqual(['b'])
  expect((await app.admin.events.list({ source: 'sluice' })).items).toEqual([])
})
