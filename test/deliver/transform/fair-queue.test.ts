// Tests how the threads are shared: by the time that each owner has used.
import { expect, it } from 'vitest'
import { FairQueue } from '../../../src/deliver/transform/fair-queue.ts'

/** Serves the queue on one thread for some turns. Returns who was served. */
function serve(queue: FairQueue<number>, turns: number): string {
  let served = ''
  for (let turn = 0; turn < turns; turn++) {
    const next = queue.take()
    if (next === undefined) return served
    served += next.owner
    queue.end(next.owner, next.job)
  }
  return served
}

function queueOf(jobs: Readonly<Record<string, readonly number[]>>): FairQueue<number> {
  const queue = new FairQueue<number>()
  for (const [owner, all] of Object.entries(jobs)) for (const ms of all) queue.add(owner, ms)
  return queue
}

it('jobs of one owner keep their order', () => {
  const queue = new FairQueue<number>()
  for (const job of [3, 1, 2]) queue.add('a', job)
  const taken: number[] = []
  for (let next = queue.take(); next !== undefined; next = queue.take()) {
    taken.push(next.job)
    queue.end('a', next.job)
  }
  expect(taken).toEqual([3, 1, 2])
  expect(queue.length).toBe(0)
})

it('owners take turns, and one that uses more time gets fewer of them', () => {
  expect(serve(queueOf({ a: [5, 5, 5], b: [5, 5, 5] }), 6)).toBe('ababab')
  // Ten quick jobs cost as much as one slow one.
  expect(serve(queueOf({ slow: [1_000, 1_000], quick: Array.from({ length: 10 }, () => 100) }), 12)).toBe(
    `slow${'quick'.repeat(10)}slow`,
  )
})

it('one job of an owner runs at a time, so an owner cannot take all threads', () => {
  const queue = queueOf({ a: [1, 1] })
  queue.add('b', 1)
  expect([queue.take()?.owner, queue.take()?.owner, queue.take()?.owner]).toEqual(['a', 'b', undefined])
  queue.end('a', 1)
  expect(queue.take()?.owner).toBe('a')
})

it('a newcomer goes before those who have used much, and has saved up nothing while it was idle', () => {
  const queue = queueOf({ slow: [1_000, 1_000, 1_000] })
  expect(serve(queue, 2)).toBe('slowslow')
  for (let n = 0; n < 3; n++) queue.add('late', 600)
  expect(serve(queue, 4)).toBe('latelateslowlate')
})

it('cleared jobs are returned, and none is left', () => {
  const queue = queueOf({ a: [1, 2], b: [3] })
  expect(queue.clear()).toEqual([1, 2, 3])
  expect(queue.take()).toBeUndefined()
  expect(queue.length).toBe(0)
})
