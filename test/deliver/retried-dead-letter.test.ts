// D4: retrying a dead letter of a repaired endpoint is the probe, and does not wait for the breaker.
import { describe, expect, it } from 'vitest'
import { delivery, subscriber, type Answer, type Delivery } from './subscriber.ts'

const failing = (times: number): readonly Answer[] => Array.from({ length: times }, () => ({ status: 500 }))

/** Returns how the next run ends. */
function next({ app }: Delivery): Promise<'done' | 'deferred' | 'dead'> {
  return Promise.race([
    app.once('run.done').then(() => 'done' as const),
    app.once('run.deferred').then(() => 'deferred' as const),
    app.once('run.dead').then(() => 'dead' as const),
  ])
}

async function deadLetters(scene: Delivery): Promise<readonly string[]> {
  return (await scene.app.admin.deadLetters.list()).items.map(({ id }) => id)
}

describe('a manual retry of a dead letter, after a literal list of retries is used up', () => {
  it('is due at once, although the breaker is open', async () => {
    const to = await subscriber(...failing(5))
    const scene = await delivery({ retry: ['1ms', '1ms', '1ms', '1ms'] })
    const { id } = await scene.endpoint({ url: to.url })
    const opened = scene.app.once('endpoint.opened')
    const dead = scene.app.once('run.dead')
    await scene.send(['a'])
    await Promise.all([opened, dead])
    expect((await scene.app.endpoints.get(id))?.health.breaker).toBe('open')
    const [deadLetter = ''] = await deadLetters(scene)
    const ended = next(scene)
    expect(await scene.app.admin.deadLetters.retry(deadLetter)).toBe('ok')
    expect(await ended).toBe('done')
    expect(to.got).toHaveLength(6)
    expect((await scene.app.endpoints.get(id))?.health.breaker).toBe('closed')
  })

  it('makes the batch that waits before it due at once too', async () => {
    const to = await subscriber(...failing(5))
    const scene = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } })
    const { id } = await scene.endpoint({ url: to.url })
    const opened = scene.app.once('endpoint.opened')
    await scene.send(['a', 'b', 'c', 'd', 'e'])
    await opened
    const deferred = scene.app.once('run.deferred')
    await scene.send(['f'])
    await deferred
    const [deadLetter = ''] = await deadLetters(scene)
    expect(await scene.app.endpoints.replay(id, { deadLetter })).toEqual({ count: 1 })
    await to.reached(7)
    expect(to.got.slice(5).map(({ ids }) => ids)).toEqual([['f'], expect.any(Array)])
  })

  it('is one probe even for many retries: the others wait if it fails', async () => {
    const to = await subscriber(...failing(6))
    const scene = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } })
    const { id } = await scene.endpoint({ url: to.url })
    const opened = scene.app.once('endpoint.opened')
    await scene.send(['a', 'b', 'c', 'd', 'e'])
    await opened
    await expect.poll(async () => (await deadLetters(scene)).length).toBe(5)
    const deferred = scene.app.once('run.deferred')
    expect(await scene.app.admin.deadLetters.retry({ flow: 'versions' })).toEqual({ count: 5 })
    await deferred
    expect(to.got).toHaveLength(6)
    expect((await scene.app.endpoints.get(id))?.health.breaker).toBe('open')
  })

  it('does not enable a disabled endpoint', async () => {
    const to = await subscriber({ status: 500 }, { status: 410 })
    const scene = await delivery({ retry: [], window: { quiet: 0, maxEvents: 1 } })
    const { id } = await scene.endpoint({ url: to.url })
    const disabled = scene.app.once('endpoint.disabled')
    await scene.send(['a', 'b'])
    await disabled
    const [deadLetter = ''] = await deadLetters(scene)
    expect(await scene.app.admin.deadLetters.retry(deadLetter)).toBe('ok')
    expect((await scene.app.endpoints.get(id))?.health.breaker).toBe('disabled')
    expect(to.got).toHaveLength(2)
  })
})
