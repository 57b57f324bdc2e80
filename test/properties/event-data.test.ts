// Untrusted input is only data, however it is written.
import { expect, it } from 'vitest'
import { parseData } from '../../src/model/event.ts'

it.each([
  '{"__proto__":{"admin":true},"a":1}',
  '{"\\u005f_proto__":{"admin":true},"a":1}',
  '{"__pr\\u006Fto__":{"admin":true},"a":1}',
  '{"__\\u0070rot\\u006f__":{"admin":true},"a":1}',
])('%s has no prototype of its own', (text) => {
  const data = parseData(Buffer.from(text)) as object
  expect(Object.keys(data)).toEqual(['a'])
  expect(Object.assign({}, data)).not.toHaveProperty('admin')
})

it('is undefined if the text is not JSON, at any depth', () => {
  expect(parseData(Buffer.from('{'))).toBeUndefined()
  expect(() => parseData(Buffer.from('['.repeat(100_000)))).not.toThrow()
})
