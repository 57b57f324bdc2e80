// Which runs count as reruns: those of a lane that ran lately in this process, with an event that arrived before that run ended.
import { expect, it } from 'vitest'
import { FollowUpRuns } from '../../src/observe/metrics/follow-up-runs.ts'

const REMEMBERED = 1_000

function lease(lane: string, arrived = 5): Parameters<FollowUpRuns['recordStart']>[0] {
  const events = [{ id: 'e', source: 's', type: 't', arrived }]
  return { lane, flow: 'f', tries: 0, lapses: 0, rank: 0, isDeadLetter: false, events }
}

function scene(): { readonly ran: (lane: string, arrived: number) => void; readonly told: () => number } {
  let [now, told] = [0, 0]
  const reruns = new FollowUpRuns(() => void told++)
  const ran = (lane: string, arrived: number): void => {
    reruns.recordStart(lease(lane, arrived))
    now += 10
    reruns.recordEnd(lease(lane, arrived), now)
  }
  return { ran, told: () => told }
}

it('counts an event that arrived during the previous run, and none that arrived after it', () => {
  const { ran, told } = scene()
  ran('a', 0)
  ran('a', 5)
  expect(told()).toBe(1)
  ran('a', 25)
  expect(told()).toBe(1)
})

it('remembers a bounded number of lanes, for a bounded time', () => {
  const { ran, told } = scene()
  ran('a', 0)
  for (let n = 0; n < REMEMBERED; n++) ran(`other ${n}`, 1e9)
  ran('a', 5)
  expect(told()).toBe(1)
  for (let n = 0; n < 2 * REMEMBERED; n++) ran(`other ${n}`, 1e9)
  ran('a', 5)
  expect(told()).toBe(1)
})

it('counts a rerun once: each end of a run is used once, however long ago it was', () => {
  let again = 0
  const reruns = new FollowUpRuns(() => void again++)
  for (const others of [0, REMEMBERED]) {
    again = 0
    reruns.recordEnd(lease('a'), 10)
    for (let n = 0; n < others; n++) reruns.recordEnd(lease(`other ${n}`), 10)
    reruns.recordStart(lease('a'))
    reruns.recordStart(lease('a'))
    expect(again).toBe(1)
  }
})
