// Tests flows over the API: listing, pausing, resuming and retiring them.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { testApp } from '../../src/testing/index.ts'
import { ownFolder } from '../temporary-folder.ts'
import { rig, START, STORES } from './rig.ts'
import { ping, seeded } from './seeded.ts'

interface Found {
  readonly items: readonly { readonly flow: string; readonly lanes: number; readonly paused?: object }[]
}

describe.each(STORES)('flows on %s', (store) => {
  test('are listed with their backlog', async () => {
    const r = await seeded(store)
    const { items } = (await r.get('/v1/flows', { key: r.read })).body as Found
    const lanes = Object.fromEntries(items.map((one) => [one.flow, one.lanes]))
    expect(lanes).toMatchObject({ does: 0, waits: 3, each: 3, keyless: 0 })
  })

  test('a paused flow starts no run; a resumed flow continues', async () => {
    const r = await seeded(store)
    const key = r.operate
    const ran = (): number => r.t.runs.filter(({ flow }) => flow === 'does').length
    const before = ran()
    expect((await r.post('/v1/flows/does/pause', { reason: 'deploy' }, { key })).body).toEqual({ result: 'ok' })
    expect((await r.post('/v1/flows/does/pause', { reason: 'deploy' }, { key })).body).toEqual({ result: 'already' })
    await r.t.send(ping('zoe'))
    await r.t.advance('1m')
    expect(ran()).toBe(before)
    const { items } = (await r.get('/v1/flows', { key })).body as Found
    expect(items.find(({ flow }) => flow === 'does')).toMatchObject({ paused: { reason: 'deploy', by: 'operator' } })
    expect((await r.post('/v1/flows/does/resume', {}, { key })).body).toEqual({ result: 'ok' })
    await r.t.advance('1s')
    expect(ran()).toBe(before + 1)
  })

  test('a flow that a process serves is not retired, and an unknown one is not found', async () => {
    const r = await seeded(store)
    const key = r.operate
    expect((await r.post('/v1/flows/does/retire', {}, { key })).body).toEqual({ result: 'running' })
    expect((await r.post('/v1/flows/nothing/retire', {}, { key })).status).toBe(404)
    expect((await r.post('/v1/flows/does/retire', {}, { key: r.read })).status).toBe(403)
  })
})

test('a flow that nobody serves any more is retired', async () => {
  const file = `sqlite:${join(ownFolder(), 'store.db')}`
  const before = new Sluice({ store: 'memory:', log: false })
  before.flow('gone', { on: 'ping', run: () => {} })
  await (await testApp(before, { store: file, now: START - 3_600_000 })).stop()
  const r = await rig(file, (app) => app.flow('does', { on: 'ping', run: () => {} }))
  await r.t.send(ping('ada'))
  expect(await r.app.admin.deadLetters.count({ kind: 'unrouted' })).toBe(1)
  expect((await r.post('/v1/flows/gone/retire')).body).toEqual({ result: 'ok' })
  expect(await r.app.admin.deadLetters.count({ kind: 'unrouted' })).toBe(0)
  await r.t.send(ping('ada'))
  expect(await r.app.admin.deadLetters.count({ kind: 'unrouted' })).toBe(0)
})
