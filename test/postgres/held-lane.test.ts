// A claim passes over lanes that other transactions hold. Their end sends no hint, so the loop asks again by itself.
import { describe, expect, inject, it } from 'vitest'
import { atWork } from './running-app.ts'

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it('L5 a lane that another transaction held during a claim runs soon after, long before the next poll', async () => {
    const ran: number[] = []
    const t = await atWork({
      url,
      now: Date.UTC(2026, 0, 10, 12),
      declare: (app) =>
        app.flow('work', {
          on: '**',
          key: () => 'k',
          debounce: '10s',
          run: ({ events }) => void ran.push(events.length),
        }),
    })
    await t.send({ type: 'a.b' })

    await t.ask('begin')
    await t.ask('select from lanes for update')
    await t.advance('10s')
    expect(ran).toEqual([])
    await t.ask('commit')
    await t.advance('1s')
    expect(ran).toEqual([1])
  })
})
