// Worker processes of an example on one PostgreSQL: they share the work, and one that is killed loses nothing.
import { expect, it } from 'vitest'
import { hello } from '../../hello/example.ts'
import { openPlace } from '../postgres.ts'
import { Stage } from '../stage.ts'

it('three workers greet everybody, although one is killed in the middle of a run', async () => {
  const place = await openPlace('postgres')
  const example = { ...hello, options: { lease: '3s', heartbeat: '1s' } } as const
  const stage = await Stage.open(example, { store: place.store, workers: 3 })
  try {
    const { mail } = stage.world
    // The first mail takes long enough for a kill in the middle of it.
    const first = Promise.withResolvers<void>()
    mail.respond = async () => {
      if (mail.log.length === 1) await first.promise
      return new Response('sent')
    }
    const names = Array.from({ length: 12 }, (_, n) => `person ${n}`)
    const headers = { authorization: 'Bearer knock-knock', 'content-type': 'application/json' }
    for (const name of names) {
      const body = JSON.stringify({ type: 'knock', name })
      expect((await stage.send('/in/door', { method: 'POST', headers, body })).status).toBe(202)
    }
    await stage.workers.killBusy()
    expect(stage.workers.size).toBe(2)
    first.resolve()
    await stage.workers.start()
    expect([stage.workers.size, stage.workers.killed]).toEqual([3, 1])
    await stage.idle()
    const greeted = mail.log.map((request) => (request.json() as { to: string }).to)
    expect(new Set(greeted)).toEqual(new Set(names))
    expect(greeted.length).toBeLessThanOrEqual(names.length + 1)
  } finally {
    await stage.close()
    await place.close()
  }
})
