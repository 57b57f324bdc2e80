// A busy map is a map: whatever comes and goes, in whatever order.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BusyMap } from '../../src/busy-map.ts'

interface Thing {
  readonly n: number
}

const key = fc.nat(12)
const act = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('set' as const), key, n: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
)

it('holds what a map holds, in the order in which it came', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
      const busy = new BusyMap<number, Thing>()
      const plain = new Map<number, Thing>()
      for (const one of acts) {
        if (one.kind === 'clear') {
          busy.clear()
          plain.clear()
        } else if (one.kind === 'delete') expect(busy.delete(one.key)).toBe(plain.delete(one.key))
        else {
          const thing = { n: one.n }
          busy.set(one.key, thing)
          plain.set(one.key, thing)
        }
        expect(busy.size).toBe(plain.size)
        expect([...busy.keys()]).toEqual([...plain.keys()])
        expect([...busy.values()]).toEqual([...plain.values()])
        for (let at = 0; at <= 12; at++) {
          expect(busy.get(at)).toBe(plain.get(at))
          expect(busy.has(at)).toBe(plain.has(at))
        }
      }
    }),
  )
})

it('lets go of what is gone: a place is used again and holds nothing meanwhile', () => {
  const busy = new BusyMap<string, Thing>()
  busy.set('a', { n: 1 })
  busy.set('b', { n: 2 })
  busy.delete('a')
  busy.set('c', { n: 3 })
  expect([...busy.values()]).toEqual([{ n: 2 }, { n: 3 }])
  expect(busy.get('a')).toBeUndefined()
})
