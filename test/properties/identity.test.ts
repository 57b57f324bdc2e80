// L11 and L10: ids of lanes and identities of events are unambiguous, and a body means exactly its bytes.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseData, newEventId, decodeText } from '../../src/model/event.ts'
import { computeIdentity, KEY_BYTES_MAX, findKeyFault, laneId, keylessLaneId } from '../../src/model/identity.ts'
import { START } from './support.ts'

/** Well-formed text of every plane, with many of the characters that serve as separators. */
const text = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'binary' }) },
  {
    weight: 5,
    arbitrary: fc.string({
      unit: fc.constantFrom('\0', ':', '1', '2', '3', 'a', '/', '\u{1f600}', '\u{feff}', '\u00e9', 'e\u0301'),
    }),
  },
  { weight: 1, arbitrary: fc.string({ minLength: 10_000, maxLength: 10_000, unit: 'binary-ascii', size: 'max' }) },
)
const pair = fc.tuple(text, text)

describe('L11 ids of lanes', () => {
  it('two lanes have the same id only if flow and key are the same', () => {
    fc.assert(
      fc.property(pair, pair, ([flow, key], [otherFlow, otherKey]) => {
        const same = flow === otherFlow && key === otherKey
        expect(laneId(flow, key) === laneId(otherFlow, otherKey)).toBe(same)
      }),
    )
  })

  it('the boundary between flow and key is part of the id', () => {
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(), (whole, one, other) => {
        const units = Array.from(whole)
        const [cut, otherCut] = [one % (units.length + 1), other % (units.length + 1)]
        const at = (n: number): string => laneId(units.slice(0, n).join(''), units.slice(n).join(''))
        expect(at(cut) === at(otherCut)).toBe(cut === otherCut)
      }),
    )
    expect(laneId('a', 'bc')).not.toBe(laneId('ab', 'c'))
    expect(laneId('a', '1:b')).not.toBe(laneId('a1:', 'b'))
    expect(laneId('a', '')).not.toBe(laneId('', 'a'))
    expect(laneId('a\0', 'b')).not.toBe(laneId('a', '\0b'))
    expect(laneId('f', 'a\0')).not.toBe(laneId('f', 'a'))
    expect(laneId('f', '\u00e9')).not.toBe(laneId('f', 'e\u0301'))
  })

  it('an id has 22 characters that suit any index, and is deterministic', () => {
    fc.assert(
      fc.property(pair, ([flow, key]) => {
        expect(laneId(flow, key)).toMatch(/^[\w-]{22}$/)
        expect(laneId(flow, key)).toBe(laneId(flow, key))
      }),
    )
  })

  it('equals the id in files of earlier versions', () => {
    expect(laneId('rank-user', 'ada')).toBe('SCNMgfIR0Ufgn9AaCk2py5')
    expect(laneId('', '')).toBe('OQ_qvHhuNp5VuQQlHWQ7Ur')
    expect(computeIdentity('github', '', 'a1')).toBe('EbkybGmi0uGc4lk8fL26xe')
  })

  it('10,000 keys are 10,000 lanes', () => {
    expect(new Set(Array.from({ length: 10_000 }, (_, n) => laneId('f', String(n)))).size).toBe(10_000)
  })

  it('the id of the lane of an event without a key begins with its time and differs by flow', () => {
    fc.assert(
      fc.property(text, text, fc.nat(2 ** 31), (flow, other, ms) => {
        const event = newEventId(START + ms)
        expect(keylessLaneId(flow, event).slice(0, 10)).toBe(event.slice(0, 10))
        expect(keylessLaneId(flow, event)).toHaveLength(26)
        expect(keylessLaneId(flow, event) === keylessLaneId(other, event)).toBe(flow === other)
      }),
    )
  })
})

describe('L11 which keys are keys', () => {
  it('any well-formed text up to 16 KB is a key, including the empty string and NUL', () => {
    fc.assert(
      fc.property(text, (key) => {
        expect(findKeyFault(key)).toBeUndefined()
      }),
    )
    expect(findKeyFault('')).toBeUndefined()
    expect(findKeyFault('\0')).toBeUndefined()
  })

  it('a key with a lone surrogate is ill-formed', () => {
    const half = fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit))
    const bmp = fc.string({ unit: fc.integer({ min: 0, max: 0xd7ff }).map((unit) => String.fromCharCode(unit)) })
    fc.assert(
      fc.property(bmp, half, bmp, (before, lone, after) => {
        expect(findKeyFault(before + lone + after)).toBe('ill-formed')
      }),
    )
  })

  it('the length is measured in bytes of UTF-8', () => {
    const unit = fc.constantFrom('a', '\0', '\u00e9', '\u20ac', '\u{1f600}')
    fc.assert(
      fc.property(unit, fc.integer({ min: -3, max: 3 }), fc.nat(3), (character, more, pad) => {
        const size = Buffer.byteLength(character)
        const key = character.repeat(Math.floor(KEY_BYTES_MAX / size) + more) + 'a'.repeat(pad)
        expect(findKeyFault(key)).toBe(Buffer.byteLength(key) > KEY_BYTES_MAX ? 'too-long' : undefined)
      }),
    )
    expect(KEY_BYTES_MAX).toBe(16 * 1024)
  })
})

describe('L10 identities', () => {
  it('source, tenant, dedupe id and the boundaries between them each make a difference', () => {
    const triple = fc.tuple(text, text, text)
    fc.assert(
      fc.property(triple, triple, fc.nat(7), (one, other, mixed) => {
        // Each part of the second identity is sometimes equal to that of the first.
        const [source, tenant, id] = one
        const next = other.map((part, n) => (mixed & (1 << n) ? (one[n] ?? '') : part)) as [string, string, string]
        const same = next.every((part, n) => part === one[n])
        expect(computeIdentity(source, tenant, id) === computeIdentity(...next)).toBe(same)
      }),
    )
  })

  it('no tenant can suppress events of another', () => {
    fc.assert(
      fc.property(text, text, text, text, (source, tenant, other, id) => {
        fc.pre(tenant !== other)
        expect(computeIdentity(source, tenant, id)).not.toBe(computeIdentity(source, other, id))
      }),
    )
    expect(computeIdentity('s', 'a', 'b')).not.toBe(computeIdentity('s', '', 'ab'))
  })
})

describe('ids of events', () => {
  it('sort by time', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 45), fc.nat(2 ** 45), (one, other) => {
        fc.pre(one !== other)
        const [first, second] = [newEventId(one), newEventId(other)]
        expect(first < second).toBe(one < other)
        expect(first).toMatch(/^[0-9a-z]{26}$/)
      }),
    )
  })

  it('are unique within a millisecond, over many calls of the random generator', () => {
    const ids = Array.from({ length: 20_000 }, () => newEventId(START))
    expect(new Set(ids).size).toBe(ids.length)
    expect(new Set(ids.map((id) => id.slice(0, 10))).size).toBe(1)
    // No part of the random bits is constant.
    for (let at = 10; at < 26; at++) expect(new Set(ids.map((id) => id[at])).size).toBe(32)
  })
})

const bytes = (...values: readonly (string | number)[]): Uint8Array =>
  Buffer.concat(values.map((value) => (typeof value === 'string' ? Buffer.from(value) : Buffer.of(value))))

describe('bodies', () => {
  it('any text is returned unchanged, including BOM and NUL', () => {
    fc.assert(
      fc.property(text, (said) => {
        expect(decodeText(Buffer.from(said))).toBe(said)
      }),
    )
    expect(decodeText(bytes(0xef, 0xbb, 0xbf, 'hi'))).toBe('\u{feff}hi')
  })

  it('any JSON is returned unchanged, except for a prototype (event-data.test.ts)', () => {
    const data = fc.jsonValue().filter((said) => !JSON.stringify(said).includes('__proto__'))
    fc.assert(
      fc.property(data, (said) => {
        expect(parseData(Buffer.from(JSON.stringify(said)))).toEqual(JSON.parse(JSON.stringify(said)))
      }),
    )
  })

  it.each(['[]', '{}', 'null', 'false', '0', '""', '[[]]', '{"":{}}', '"\\u0000"', '"\u{1f600}"'])(
    '%s is returned unchanged',
    (json) => {
      expect(JSON.stringify(parseData(bytes(json)))).toBe(JSON.stringify(JSON.parse(json)))
    },
  )

  it('data of a body that is not JSON is undefined and never throws: empty, text, a BOM, any bytes', () => {
    for (const body of [bytes(), bytes('hello'), bytes('{'), bytes(0xef, 0xbb, 0xbf, '{}'), bytes(0, '{}')]) {
      expect(parseData(body)).toBeUndefined()
    }
    fc.assert(
      fc.property(fc.uint8Array(), (body) => {
        expect(() => [decodeText(body), parseData(body)]).not.toThrow()
      }),
    )
  })

  it('bytes that are not UTF-8 are read as U+FFFD, without an effect on the next body', () => {
    expect(decodeText(bytes('a', 0xff, 'b'))).toBe('a\u{fffd}b')
    expect(parseData(bytes('{"a":"', 0xc3, '"}'))).toEqual({ a: '\u{fffd}' })
    expect(decodeText(bytes(0xe2, 0x82))).toBe('\u{fffd}')
    expect(decodeText(bytes(0xac))).toBe('\u{fffd}')
  })
})
