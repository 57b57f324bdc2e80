// Tests alerts over the API.
import { describe, expect, test } from 'vitest'
import { rig, STORES } from './rig.ts'

describe.each(STORES)('alerts on %s', (store) => {
  test('are all listed with their state', async () => {
    const r = await rig(store, (app) =>
      app
        .alert('odd', { when: () => 'It is odd.' })
        .alert('even', { when: () => false })
        .alert('soon', { when: () => true, for: '1h' })
        .alert('wrong', { when: (figures) => (figures as unknown as { deep: { er: boolean } }).deep.er }),
    )
    await r.t.advance('1m')
    expect((await r.get('/v1/alerts')).body).toMatchObject({
      items: [
        { name: 'odd', state: 'raised', text: 'It is odd.' },
        { name: 'even', state: 'clear' },
        { name: 'soon', state: 'pending' },
        { name: 'wrong', state: 'clear', broken: expect.stringContaining('undefined') },
      ],
    })
  })

  test('without alerts the list is empty, and the route takes no parameters', async () => {
    const r = await rig(store, () => {})
    expect((await r.get('/v1/alerts')).body).toEqual({ items: [] })
    expect((await r.get('/v1/alerts?state=raised')).status).toBe(400)
    expect((await r.get('/v1/alerts', { address: '10.0.0.1' })).status).toBe(401)
  })
})
