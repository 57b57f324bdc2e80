// Slices of a JSON text have the same meaning as the result of a parser, in any spelling.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  readElements,
  readMembers,
  buildObject,
  readWord,
  parseJsonSlice,
  type JsonSlice,
} from '../../src/sources/json-slices.ts'

const RUNS = { numRuns: 2_000 }

function written(text: string): JsonSlice {
  const json = parseJsonSlice(Buffer.from(text))
  if ('code' in json) throw new Error(json.what)
  return json.value
}

const parsed = (value: JsonSlice): unknown => JSON.parse(Buffer.from(value).toString())
const spaced = fc.tuple(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom('', ' ', '\t', '\n'))

describe('json-text', () => {
  test('members and elements are those of the parser', () => {
    fc.assert(
      fc.property(spaced, ([value, space]) => {
        const json = written(space + JSON.stringify(value, null, space) + space)
        const again = JSON.parse(JSON.stringify(value)) as object | null
        const isObject = typeof again === 'object' && again !== null && !Array.isArray(again)
        const members = [...readMembers(json)].map(([name, part]) => [name, parsed(part)] as const)
        expect(Object.fromEntries(members)).toEqual(isObject ? again : {})
        expect(readElements(json).map(parsed)).toEqual(Array.isArray(again) ? again : [])
        if (isObject) expect(parsed(buildObject(readMembers(json)))).toEqual(again)
      }),
      RUNS,
    )
  })

  test('any bytes are either rejected or sliced', () => {
    const text = fc.oneof(
      fc.json(),
      fc.string(),
      fc.string({ unit: fc.constantFrom(...'{}[]",:\\ 1etruanlsf-.'.split('')) }),
    )
    fc.assert(
      fc.property(text, (one) => {
        const json = parseJsonSlice(Buffer.from(one))
        if ('code' in json) return
        const parts = [...readMembers(json.value).values(), ...readElements(json.value)]
        for (const part of parts) expect(() => parsed(part)).not.toThrow()
      }),
      RUNS,
    )
  })

  test('of two members with one name, the last one counts', () => {
    expect(readWord(readMembers(written('{"a":"1","\\u0061":"2"}')).get('a'))).toBe('2')
  })

  test('a number keeps all its digits', () => {
    const members = readMembers(written('{"a":12345678901234567890,"b":"x\\"y","c":null,"d":"","e":"\\ud800","f":1}'))
    expect('abcdefg'.split('').map((name) => readWord(members.get(name)))).toEqual([
      '12345678901234567890',
      'x"y',
      undefined,
      undefined,
      undefined,
      '1',
      undefined,
    ])
  })

  test('a byte order mark before the text is skipped', () => {
    expect(parsed(written('\uFEFF {"a":1}'))).toEqual({ a: 1 })
  })

  test('a text with a nesting deeper than 64 is rejected unread', () => {
    expect(parseJsonSlice(Buffer.from('['.repeat(100_000)))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
  })
})
