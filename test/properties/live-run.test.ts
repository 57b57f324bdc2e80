// What code that a run calls may know about it: whether its lease is still live (M4), and whether it may be deferred (M6).
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { serializeRunState } from '../../src/run/live-run.ts'
import { LiveRun } from '../../src/run/live-run.ts'
import type { LeasedRun } from '../../src/store/contract/index.ts'

function live(state64 = ''): { readonly run: LiveRun; readonly pass: (ms: number) => void } {
  let now = 0
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} }
  const lease: LeasedRun = {
    lane: 'l',
    flow: 'f',
    key: 'k',
    tenant: '',
    group: '',
    runId: 'r',
    parent: '',
    token: 1,
    rank: 0,
    isDeadLetter: false,
    replay: '',
    tries: 0,
    lapses: 0,
    failingSince: 0,
    snoozedSince: 0,
    stateBase64: state64,
    due: 0,
    until: 100,
    events: [],
    superseded: 0,
  }
  return { run: new LiveRun(lease, clock, 100), pass: (ms) => void (now += ms) }
}

describe('the state of the lease', () => {
  it('is lost when the lease is over, even without a message', () => {
    const { run, pass } = live()
    pass(99)
    expect(run.status()).toBe('live')
    pass(1)
    expect(run.status()).toBe('lost')
  })

  it('is lost when the store says so, and keeps its value once the run has ended', () => {
    const lost = live().run
    lost.abort('lost')
    expect(lost.status()).toBe('lost')
    const { run, pass } = live()
    run.markEnded('done')
    pass(1_000)
    expect(run.status()).toBe('done')
  })
})

describe('a deferral', () => {
  const midway = serializeRunState({ published: 0, state: undefined, midway: true })

  it("is allowed only once in the middle of the run's calls", () => {
    const { run } = live(midway)
    expect(run.mayBeDeferred()).toBe(true)
    run.markCalled()
    expect(run.mayBeDeferred()).toBe(false)
  })

  it('is allowed any number of times before its first call, or if it was never deferred', () => {
    const { run } = live()
    run.markCalled()
    expect(run.mayBeDeferred()).toBe(true)
  })
})

it('wakes pending calls when the run ends undone, and reports the longest wait', () => {
  const { run } = live()
  const woken: string[] = []
  const wait = (limit: string, until: number): (() => void) =>
    run.trackWait({ limit, until, wake: () => void woken.push(limit) })
  wait('a', 10)
  const noLonger = wait('b', 20)
  expect(run.longestWait?.limit).toBe('b')
  noLonger()
  expect(run.longestWait?.limit).toBe('a')
  run.markEnded('undone')
  expect(woken).toEqual(['a'])
})

it('has a signal that is aborted, with the reason, even if nobody looked at it before', () => {
  const { run } = live()
  run.abort('timeout')
  expect(run.signal.aborted).toBe(true)
  expect(String(run.signal.reason)).toContain('took longer than its timeout')
})
