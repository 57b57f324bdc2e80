// A churn map behaves like a Map, for any insertions and deletions.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ChurnMap } from '../../src/churn-map.ts'
import { garbageCollector } from './garbage-collector.ts'

interface Thing {
  readonly n: number
}

const key = fc.nat(12)
const act = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('set' as const), key, n: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
)

it('has the same content as a Map, in the order of insertion', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
      const busy = new ChurnMap<number, Thing>()
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

const collect = garbageCollector()

it('releases deleted values', async () => {
  const busy = new ChurnMap<string, Thing>()
  const gone = new WeakRef(added(busy, 'a'))
  const stays = new WeakRef(added(busy, 'b'))
  busy.delete('a')
  // A value stays alive until the end of the turn in which a WeakRef to it was created.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect([gone.deref(), stays.deref()]).toEqual([undefined, { n: 1 }])
})

function added(busy: ChurnMap<string, Thing>, name: string): Thing {
  const thing = { n: 1 }
  busy.set(name, thing)
  return thing
}
