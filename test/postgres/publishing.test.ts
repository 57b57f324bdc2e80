// On a server: publishing over HTTP, events that a handler publishes for later and for one flow, and `whileRunning` per event.
// On the other stores: test/api/publish.test.ts, test/engine/run-publish.test.ts, during-run.test.ts and cancel.test.ts.
import { describe, expect, inject, test } from 'vitest'
import type { FlowEvent } from '../../src/index.ts'
import { Gate } from '../engine/scene.ts'
import { atWork } from './running-app.ts'

const paid = (id: string): object => ({ type: 'paid', id, data: id })

const now = Date.UTC(2026, 0, 10, 12)

describe.each(inject('postgresServers'))('publishing on $name', ({ url }) => {
  test('POST /v1/events runs a repeated id once, stores nothing of a wrong list, and refuses a read key', async () => {
    const ran: string[] = []
    const t = await atWork({
      url,
      now,
      declare: (app) =>
        app.flow('f', { on: 'paid', run: ({ events }) => void ran.push(...events.map(({ text }) => text)) }),
    })
    await t.app.admin.keys.create({ name: 'ops', role: 'operate' })
    const { secret: key } = await t.app.admin.keys.create({ name: 'shop', role: 'publish' })
    const { secret: reader } = await t.app.admin.keys.create({ name: 'eyes', role: 'read' })
    const post = async (body: unknown, by = key): Promise<unknown[]> => {
      const headers = { authorization: `Bearer ${by}`, 'content-type': 'application/json' }
      const request = new Request('http://sluice/v1/events', { method: 'POST', headers, body: JSON.stringify(body) })
      const response = await t.app.fetch(request)
      const { events, code } = (await response.json()) as { events?: { kind: string }[]; code?: string }
      return [response.status, code ?? events?.map(({ kind }) => kind)]
    }
    expect(await post(paid('a'))).toEqual([202, ['stored']])
    expect(await post([paid('a'), paid('b')])).toEqual([202, ['repeated', 'stored']])
    expect(await post({ ...paid('a'), data: 'other' })).toEqual([202, ['conflict']])
    expect(await post([paid('c'), { id: 'd' }])).toEqual([400, 'REQUEST_INVALID'])
    expect(await post(paid('e'), reader)).toEqual([403, 'ROLE_TOO_LOW'])
    await t.advance('1s')
    expect(ran.toSorted()).toEqual(['"a"', '"b"'])
  })

  test('L2b run.publish with at and to: one flow gets the event, at its time, once although the run is repeated', async () => {
    const ran: string[] = []
    const note = (flow: string): { run: () => void } => ({ run: () => void ran.push(flow) })
    const t = await atWork({
      url,
      now,
      declare: (app) =>
        app
          .flow('first', {
            on: 'begin',
            retry: ['1s'],
            run: (run) => {
              run.publish({ type: 'next' }, { at: now + 60_000, to: 'second' })
              if (run.attempt === 1) throw new Error('again')
            },
          })
          .flow('second', { on: 'next', ...note('second') })
          .flow('third', { on: 'next', ...note('third') }),
    })
    await t.send({ type: 'begin' })
    await t.advance('59s')
    expect(ran).toEqual([])
    await t.advance('5s')
    expect(ran).toEqual(['second'])
  })

  test('L6c whileRunning per event: only an event that says cancel cancels', async () => {
    const gate = new Gate()
    const ran: string[][] = []
    const t = await atWork({
      url,
      now,
      declare: (app) =>
        app.flow('f', {
          on: 'said',
          key: ({ subject }) => subject,
          debounce: { quiet: '10s', max: '5m' },
          whileRunning: ({ tenant }: FlowEvent) => (tenant === 'resets' ? 'cancel' : 'window'),
          run: async ({ key, events, signal }) => {
            ran.push(events.map(({ text }) => text))
            await Promise.race([gate.wait(key), new Promise((_, fail) => signal.addEventListener('abort', fail))])
          },
        }),
    })
    const say = (tenant: string, data: number): Promise<unknown> =>
      t.send({ type: 'said', subject: 'ada', tenant, data })
    await say('waits', 1)
    await t.advance('10s')
    await say('waits', 2)
    await t.advance('1s')
    expect(ran).toEqual([['1']])
    await say('resets', 3)
    await t.advance('10s')
    expect(ran).toEqual([['1'], ['1', '2', '3']])
    gate.open('ada')
    await t.advance('1s')
    expect(ran).toHaveLength(2)
  })
})
