// A restart must not change deadlines beyond any timer, nor unusual keys and payloads.
import { describe, expect, it } from 'vitest'
import { laneId } from '../../src/model/identity.ts'
import { encodeText, createClaimRequest, DAY, done } from '../conformance/builders.ts'
import type { LeasedRun, Store } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { event, freshFile, open, send } from './scratch.ts'

const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
let requests = 0

/** Claims what is due, and settles it. */
async function runDue(store: Store): Promise<readonly LeasedRun[]> {
  const call = { process: 'p', routes: 1, budget: 64_000_000 }
  const claim = [createClaimRequest({ maxRuns: 100_000 })]
  const { claimed } = await store.settleAndClaim({ ...call, request: ++requests, settle: [], claim })
  const settle = claimed.map(({ lane, token }) => ({ ...END, lane, token }))
  await store.settleAndClaim({ ...call, request: ++requests, settle, claim: [] })
  return claimed
}

describe('deadlines', () => {
  it('a quiet of 400 days survives a restart and is not early by a millisecond', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const first = await open(file, { clock })
    await send(first, event('late', { quiet: 400 * DAY, max: 800 * DAY }))
    await first.close()
    clock.advance(400 * DAY - 1)
    const second = await open(file, { clock })
    expect(await runDue(second)).toEqual([])
    await second.close()
    clock.advance(1)
    expect((await runDue(await open(file, { clock }))).map((run) => run.key)).toEqual(['late'])
  })

  it('R12: 10,000 timers from a second to 400 days over 50 restarts: each fires once, none early, none late', async () => {
    const TIMERS = 10_000
    const RESTARTS = 50
    const file = freshFile()
    const clock = new VirtualClock()
    const start = clock.now()
    const spread = (400 * DAY) / 1_000
    const dues = new Map<string, number>()
    let store = await open(file, { clock })
    const events = Array.from({ length: TIMERS }, (_, n) => {
      const quiet = Math.round(1_000 * spread ** (n / (TIMERS - 1)))
      dues.set(`t${n}`, start + quiet)
      return event(`t${n}`, { quiet, max: quiet })
    })
    await send(store, ...events)
    for (let n = 1; n <= RESTARTS; n++) {
      await store.close()
      clock.set(start + Math.round(1_000 * spread ** (n / RESTARTS)))
      store = await open(file, { clock })
      const due = [...dues].filter(([, at]) => at <= clock.now()).map(([key]) => key)
      expect((await runDue(store)).map((run) => run.key)).toEqual(due)
      for (const key of due) dues.delete(key)
    }
    expect(dues.size).toBe(0)
  })
})

/** Repeated letters would compress; the seed makes it the same each time. */
function randomText(length: number): string {
  let seed = 7
  return Array.from({ length }, () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return String.fromCharCode(0x20 + ((seed >>> 16) % 0x2000))
  }).join('')
}

describe('keys', () => {
  const keys = [
    randomText(10_000).slice(0, 5_000),
    randomText(5_300),
    'x'.repeat(10_000),
    '',
    '\0',
    'a\0b',
    '👩‍👩‍👧‍👦',
    '\u{10ffff}',
    `'";--`,
  ]
  const ascii = Array.from(randomText(10_000), (one) => String.fromCharCode(33 + (one.charCodeAt(0) % 94))).join('')

  it('of 10,000 random characters, of none, of NUL and of emoji are the same after a restart', async () => {
    const file = freshFile()
    const all = [ascii, ...keys]
    const first = await open(file)
    await send(first, ...all.map((key, n) => event(`e${n}`, { key })))
    await first.close()
    const second = await open(file)
    for (const key of all) expect((await second.get({ kind: 'lanes', id: laneId('flow', key) })).item?.key).toBe(key)
    expect((await runDue(second)).map((run) => run.key)).toEqual(all)
  })

  it('with a lone surrogate are rejected; other items of the call are stored', async () => {
    const store = await open(freshFile())
    const answers = await send(
      store,
      event('a'),
      event('b', { key: 'x\ud800' }),
      event('c', { key: '\udc00' }),
      event('d'),
    )
    expect(answers.map((answer) => answer.kind)).toEqual(['stored', 'refused', 'refused', 'stored'])
    expect(answers[1]).toMatchObject({ field: 'placements.key' })
    expect((await store.get({ kind: 'events', id: 'b' })).item).toBeUndefined()
  })

  it('an id with a lone surrogate is rejected, or returned unchanged', async () => {
    const store = await open(freshFile())
    const [answer] = await send(store, event('a\ud800', { key: 'a' }))
    if (answer?.kind === 'refused') return
    expect((await runDue(store))[0]?.events[0]?.id).toBe('a\ud800')
  })
})

describe('payloads', () => {
  const payloads = [
    new Uint8Array(),
    encodeText('[]'),
    encodeText('{}'),
    new Uint8Array([0, 97, 0, 0, 98, 0]),
    encodeText('{"a":"👩‍👩‍👧‍👦"}'),
    new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
    Uint8Array.from({ length: 1_048_576 }, (_, n) => (n * 31 + (n >> 8)) % 256),
  ]

  it('have the same bytes after a restart, in the claim and by their id', async () => {
    const file = freshFile()
    const first = await open(file)
    await send(first, ...payloads.map((body, n) => event(`e${n}`, { body, dedupe: `d${n}` })))
    await first.close()
    const second = await open(file)
    const { bodies } = await second.readBodies({ events: payloads.map((_, n) => `e${n}`) })
    const claimed = (await runDue(second)).flatMap((run) => run.events.map((one) => one.body))
    for (const [n, body] of payloads.entries()) {
      expect(Buffer.compare(bodies[n] ?? encodeText('gone'), body)).toBe(0)
      expect(Buffer.compare(claimed[n] ?? encodeText('gone'), body)).toBe(0)
    }
  })
})
