// Tests each possible result of a POST and the outcome of its batch.
import { expect, test } from 'vitest'
import { responseBudget, decideOutcome, type DeliveryOutcome } from '../../src/deliver/outcome.ts'
import type { PostResponse, PostFault } from '../../src/deliver/http/post.ts'

const NOW = Date.UTC(2026, 10, 16)
const EVENTS = ['a', 'b', 'c']

function answered(status: number, over: Partial<PostResponse> & { readonly text?: string } = {}): DeliveryOutcome {
  const body = Buffer.from(over.text ?? '')
  const usual = { kind: 'answered', status, retryAfter: undefined, date: undefined, isComplete: true, ms: 5 } as const
  return decideOutcome({ ...usual, body, ...over }, EVENTS, NOW)
}

test.each([200, 201, 202, 204, 299])('%i is delivered', (status) => {
  expect(answered(status)).toEqual({ kind: 'delivered' })
})

test('410 disables the endpoint', () => {
  expect(answered(410)).toEqual({ kind: 'disable', reason: 'The endpoint returned 410 (gone).' })
})

test.each([300, 301, 302, 303, 304, 307, 308])('%i is a failure that names the redirect', (status) => {
  expect(answered(status)).toMatchObject({
    kind: 'retry',
    after: undefined,
    reason: expect.stringContaining('redirects') as string,
  })
})

test.each([400, 401, 403, 404, 409, 413, 422, 500, 502, 504, 599])('%i is retried on the schedule', (status) => {
  expect(answered(status, { retryAfter: '60' })).toEqual({
    kind: 'retry',
    after: undefined,
    reason: `The endpoint returned ${status}.`,
  })
})

const HTTP_DATE = 'Mon, 16 Nov 2026 00:01:00 GMT'

test.each([
  [429, '120', 120_000],
  [503, '120', 120_000],
  [503, '0', 0],
  [503, HTTP_DATE, 60_000],
  [503, 'Mon, 16 Nov 2020 00:00:00 GMT', 0],
  [429, '999999999', 24 * 3_600_000],
  [429, 'soon', 1_000],
  [429, '-5', 1_000],
  [429, undefined, 1_000],
  [503, undefined, undefined],
  [503, '1e9', undefined],
])('%i with Retry-After %j: after %j', (status, retryAfter, after) => {
  expect(answered(status, { retryAfter })).toMatchObject({ kind: 'retry', after })
})

test('a Retry-After date is compared with the Date header', () => {
  const end = answered(503, { retryAfter: HTTP_DATE, date: 'Mon, 16 Nov 2026 00:00:50 GMT' })
  expect(end).toMatchObject({ kind: 'retry', after: 10_000 })
})

test.each<[PostFault, DeliveryOutcome['kind']]>([
  ['guarded', 'dead'],
  ['dns', 'retry'],
  ['connect', 'retry'],
  ['tls', 'retry'],
  ['timeout', 'retry'],
  ['cut-off', 'retry'],
  ['malformed', 'retry'],
  ['stopped', 'ours'],
  ['unsendable', 'ours'],
])('%s: %s', (why, kind) => {
  expect(decideOutcome({ kind: 'failed', why, error: 'so', ms: 1 }, EVENTS, NOW)).toMatchObject({
    kind,
    reason: `${why}: so`,
  })
})

test.each([
  ['{"accepted":["a","c"]}', ['b']],
  ['{"failed":["b"]}', ['b']],
  ['{"failed":["c","a"]}', ['a', 'c']],
  ['{"accepted":["a"],"failed":["c"]}', ['b', 'c']],
  ['{"accepted":["a","x"]}', ['b', 'c']],
  ['{"failed":["b","x",5,null]}', ['b']],
])('%s: the other events are done', (text, failed) => {
  const reason = `The endpoint accepted ${3 - failed.length} of 3 events.`
  expect(answered(200, { text })).toEqual({ kind: 'partly', failed, reason })
  expect(answered(500, { text })).toMatchObject({ kind: 'retry' })
})

test.each(['{"accepted":[]}', '{"failed":["a","b","c"]}'])('%s: nothing was accepted', (text) => {
  expect(answered(200, { text })).toEqual({
    kind: 'retry',
    after: undefined,
    reason: 'The endpoint accepted 0 of 3 events.',
  })
})

test.each([
  '',
  'ok',
  'null',
  '[]',
  '["a"]',
  '{"ok":true}',
  '{"accepted":true}',
  '{"accepted":3}',
  '{"accepted":["a","b","c"]}',
  '{"accepted":["other","ids"]}',
  '{"failed":[]}',
  '{"failed":["other"]}',
  '{"failed":0}',
  '{"accepted":["a"',
  '{"__proto__":{"failed":["a"]}}',
])('%j is not about this batch: delivered', (text) => {
  expect(answered(200, { text })).toEqual({ kind: 'delivered' })
})

test('a cut response has no list, and every complete list fits the budget', () => {
  expect(answered(200, { text: '{"failed":["a"]}', isComplete: false })).toEqual({ kind: 'delivered' })
  const ids = Array.from({ length: 1_000 }, (_, at) => `${'é'.repeat(64)}${at}`)
  const said = JSON.stringify({ accepted: ids, failed: [] }, undefined, 8)
  expect(Buffer.byteLength(said)).toBeLessThanOrEqual(responseBudget(ids))
})
