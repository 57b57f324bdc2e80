// What is said of an event loop that stood still: no more than is known.
import { expect, test } from 'vitest'
import { describeLag } from '../../src/maintain/loop-lag.ts'

const run = (key: string, flow = 'rank') => ({ flow, key })

test('names each run once, and convicts none', () => {
  expect(describeLag(1_600.4, [run('ada'), run('bob'), run('ada'), run('ada', 'mail')])).toBe(
    'The event loop was blocked for 1600 ms. One of the runs that were live then, or other code, blocked it: rank "ada", rank "bob", mail "ada".',
  )
})

test('blames no run when there was none', () => {
  expect(describeLag(1_000, [])).toBe(
    'The event loop was blocked for 1000 ms. No run was live, so other code of this process blocked it.',
  )
})

test('is a line, however many ran and whatever they are called', () => {
  const text = describeLag(
    1_000,
    Array.from({ length: 100 }, (_, n) => run(`k\n${n}`)),
  )
  expect(text).not.toContain('\n')
  expect(text).toMatch(/and 90 more\.$/)
  expect(describeLag(1_000, [run('k'.repeat(16_000))]).length).toBeLessThan(300)
})
