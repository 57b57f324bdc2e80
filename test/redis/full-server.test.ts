// A server whose memory is full: arriving events are rejected, nothing that was acknowledged is lost, and runs still end.
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { createClaimRequest, createEventToStore, done } from '../conformance/builders.ts'
import { startRedisServer } from './server.ts'

const BODY = 'x'.repeat(10_000)

test('a full server rejects arriving events, keeps the acknowledged ones, and their runs end', async () => {
  const server = await startRedisServer({ settings: { maxmemory: '8mb' } })
  onTestFinished(() => server.stop())
  const store = await openStore(server.url)
  onTestFinished(() => store.close())
  const { now } = await store.stats()
  let acked = 0
  const append = async (key: string): Promise<void> => {
    await store.append({ routes: 1, events: [createEventToStore(key, { key, body: BODY }, now)] })
  }
  const fill = async (): Promise<unknown> => {
    for (;;) {
      await append(`k${acked}`)
      acked++
    }
  }
  await expect(fill()).rejects.toMatchObject({
    code: 'STORE_FULL',
    fix: expect.stringContaining('maxmemory') as string,
  })
  expect(acked).toBeGreaterThan(100)

  const claim = [createClaimRequest({ maxRuns: 50 })]
  let ended = 0
  let settle: Parameters<typeof store.settleAndClaim>[0]['settle'] = []
  for (let request = 1; ; request++) {
    const { claimed, settled } = await store.settleAndClaim({
      process: 'p',
      request,
      routes: 1,
      settle,
      claim,
      budget: 1e9,
    })
    expect(settled.every((result) => result === 'ok')).toBe(true)
    ended += settled.length
    for (const run of claimed) expect(run.events.map((event) => event.body?.length)).toEqual([BODY.length])
    if (claimed.length + settle.length === 0) break
    settle = claimed.map(({ lane, token }) => ({
      lane,
      token,
      outcome: done,
      attempt: undefined,
      publish: [],
      whileRunning: 'window',
      keep: 0,
    }))
  }
  expect(ended).toBe(acked)

  // Retention makes room, and the door is open again.
  const all = { '': 0 }
  const policy = { events: all, runs: all, deadLetters: 0, bytes: 0, lanesPerTenant: {} }
  await store.maintain({ budget: 10_000, policy })
  await append('again')
})
