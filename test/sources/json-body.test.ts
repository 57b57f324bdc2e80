// Tests bodies as JSON: ids keep all digits, nothing becomes the prototype, and an unreadable body is rejected.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson } from '../../src/sources/json-body.ts'

function valueOf(text: string): unknown {
  const json = parseJson(Buffer.from(text))
  return 'code' in json ? json.code : json.value
}

test('an integer beyond the precision of a number becomes a string of its digits', () => {
  expect(valueOf('{"a":12345678901234567890}')).toEqual({ a: '12345678901234567890' })
  expect(valueOf('[1, -9007199254740993]')).toEqual([1, '-9007199254740993'])
  expect(valueOf('9007199254740993')).toBe('9007199254740993')
  expect(valueOf('[9007199254740991,1.5,1e3,12345678901234567.5]')).toEqual([
    9007199254740991, 1.5, 1_000, 12345678901234568,
  ])
})

test('nothing becomes the prototype, however it is written', () => {
  for (const name of [
    '__proto__',
    String.raw`\u005f_proto__`,
    String.raw`__pr\u006Fto__`,
    String.raw`__\u0070roto__`,
  ]) {
    const value = valueOf(`{"${name}":{"isAdmin":true},"a":{"${name}":1}}`)
    expect(value).toEqual({ a: {} })
    expect(Object.assign({}, value)).not.toHaveProperty('isAdmin')
  }
})

test('everything else is as JSON.parse returns it', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      fc.pre(!/__proto__|\d{16}/.test(text))
      expect(valueOf(text)).toEqual(JSON.parse(text))
    }),
  )
})

describe('a body is rejected', () => {
  test.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['too deep', '['.repeat(65) + ']'.repeat(65)],
    ['far too deep', '['.repeat(100_000)],
  ])('%s', (_, text) => {
    expect(valueOf(text)).toBe('BODY_NOT_UNDERSTOOD')
  })

  test('if it is not UTF-8', () => {
    expect(parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
  })
})
