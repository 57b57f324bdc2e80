// Tests what is reported after the event loop was blocked: only what is known.
import { expect, test } from 'vitest'
import { describeLag } from '../../src/maintain/loop-lag.ts'

const run = (key: string, flow = 'rank') => ({ flow, key })

test('names each live run once, and blames none', () => {
  expect(describeLag(1_600.4, [run('ada'), run('bob'), run('ada'), run('ada', 'mail')])).toBe(
    'The event loop was blocked for 1600 ms. One of the runs that were live then, or other code, blocked it: rank "ada", rank "bob", mail "ada".',
  )
})

test('names no run if there was none', () => {
  expect(describeLag(1_000, [])).toBe(
    'The event loop was blocked for 1000 ms. No run was live, so other code of this process blocked it.',
  )
})

test('is one line, however many runs there were and whatever their keys contain', () => {
  const text = describeLag(
    1_000,
    Array.from({ length: 100 }, (_, n) => run(`k\n${n}`)),
  )
  expect(text).not.toContain('\n')
  expect(text).toMatch(/and 90 more\.$/)
  expect(describeLag(1_000, [run('k'.repeat(16_000))]).length).toBeLessThan(300)
})
