// Tests the checks of the fleet: they must find each planted fault, and nothing in a correct log.
import { expect, test } from 'vitest'
import { complaintsOf, median, p99, type Given, type Witnessed } from './fleet-check.ts'

function post(batch: string, events: readonly string[], more: Partial<Witnessed> = {}): Witnessed {
  const at = more.at ?? 0
  return { endpoint: 0, batch, events, at, until: at, end: 'taken', has: events, isSigned: true, by: 'w1', ...more }
}

const FINE: Given = {
  endpoint: 7,
  wanted: ['a', 'b', 'c', 'd'],
  posts: [post('1', ['a', 'b'], { at: 1, until: 2 }), post('2', ['c', 'd'], { at: 3, until: 4 })],
  deadLetters: [],
  killed: [],
  isHealthy: true,
  maxEvents: 2,
  saying: /500/,
}

const said = (more: Partial<Given>): readonly string[] => complaintsOf({ ...FINE, ...more })

const [FIRST, SECOND] = [post('1', ['a', 'b'], { at: 1, until: 2 }), post('2', ['c', 'd'], { at: 5, until: 6 })]
const AGAIN = post('1', ['a', 'b'], { at: 3, until: 4 })
const LATER: readonly Witnessed[] = [AGAIN, SECOND].map((one) => ({
  ...one,
  by: 'w2',
  at: one.at + 6,
  until: one.until + 6,
}))
const LATER_AGAIN: Witnessed = { ...AGAIN, by: 'w3' }
const cutOff = (one: Witnessed): Witnessed => ({ ...one, end: 'cut-off' })

test.each<[string, Partial<Given>]>([
  ['all is well', {}],
  ['refused, then taken', { posts: [{ ...FIRST, end: 'refused', has: [] }, AGAIN, SECOND], isHealthy: false }],
  ['cut off, then sent again', { posts: [cutOff(FIRST), AGAIN, SECOND] }],
  ['killed before it had heard, then sent again', { posts: [FIRST, ...LATER], killed: ['w1'] }],
  ['the same, and killed again', { posts: [FIRST, LATER_AGAIN, ...LATER], killed: ['w1', 'w3'] }],
  ['the rest of a part', { posts: [{ ...FIRST, has: ['a'] }, post('1b', ['b'], { at: 3, until: 4 }), SECOND] }],
  [
    'given up with a reason',
    {
      posts: [{ ...FIRST, end: 'refused', has: [] }, SECOND],
      deadLetters: [{ events: ['a', 'b'], reason: '500' }],
      isHealthy: false,
    },
  ],
])('%s: no complaint', (_, more) => expect(said(more)).toEqual([]))

test.each<[string, Partial<Given>, RegExp]>([
  ['an event that never came', { posts: [FIRST] }, /c is missing/],
  [
    'one that was refused and not sent again',
    { posts: [{ ...FIRST, end: 'refused', has: [] }, SECOND] },
    /a is missing/,
  ],
  ['one that nobody asked for', { wanted: ['a', 'b', 'c'] }, /d was never asked for/],
  ['one that comes too late', { wanted: ['c', 'd', 'a', 'b'] }, /c came after b/],
  ['order inside of a batch', { posts: [post('1', ['b', 'a']), SECOND] }, /1 is not in order/],
  ['twice without a reason', { posts: [FIRST, AGAIN, SECOND] }, /a came twice, though/],
  ['twice, and another was killed', { posts: [FIRST, ...LATER], killed: ['w2'] }, /a came twice, though/],
  ['twice, by one that is killed later', { posts: [FIRST, AGAIN, SECOND], killed: ['w1'] }, /a came twice, though/],
  ['what was heard, after a kill', { posts: [FIRST, SECOND, ...LATER], killed: ['w1'] }, /a came twice, though/],
  [
    'twice, under another id',
    { posts: [cutOff(FIRST), { ...AGAIN, batch: '9' }, SECOND] },
    /a came twice, as 1 and as 9/,
  ],
  ['the same id for other events', { posts: [FIRST, { ...SECOND, batch: '1' }] }, /1 has other events/],
  ['no signature', { posts: [{ ...FIRST, isSigned: false }, SECOND] }, /1 is not signed/],
  ['too many at once', { maxEvents: 1 }, /1 has 2 events/],
  ['two POSTs at once', { posts: [{ ...FIRST, until: 6 }, SECOND] }, /2 came while 1 was there/],
  [
    'a dead letter of a healthy one',
    { deadLetters: [{ events: [], reason: '500' }] },
    /a healthy one has a dead letter/,
  ],
  [
    'a dead letter without a reason',
    { deadLetters: [{ events: [], reason: '' }], isHealthy: false },
    /does not say why/,
  ],
  [
    'a dead letter of what was taken',
    { deadLetters: [{ events: ['a'], reason: '500' }], isHealthy: false },
    /a is dead though/,
  ],
])('%s is reported', (_, more, complaint) => {
  expect(said(more).join('\n')).toMatch(complaint)
  expect(said(more)[0]).toMatch(/^endpoint 7: /)
})

test('the measured values', () => {
  expect(p99(Array.from({ length: 1_000 }, (_, n) => 999 - n))).toBe(989)
  expect(p99([5])).toBe(5)
  expect(p99([])).toBeNaN()
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([7])]).toEqual([2, 2.5, 7])
})
