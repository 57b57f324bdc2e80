// Tests that the index by type finds the same endpoints as matching each of them.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEventMatcher } from '../../src/deliver/endpoint.ts'
import { TenantEndpoints } from '../../src/deliver/subscriptions.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'

function eventOf(source: string, type: string): FlowEvent {
  return new FlowEvent({
    id: 'e',
    source,
    type,
    time: 0,
    tenant: '',
    subject: '',
    attributes: '',
    body: new Uint8Array(),
  })
}

function endpoint(
  id: string,
  eventFilter: readonly string[],
): ConstructorParameters<typeof TenantEndpoints>[0][number] {
  return { id, tenant: '', eventFilter, wants: createEventMatcher({ id, tenant: '', eventFilter, where: null }) }
}

const word = fc.constantFrom('a', 'b', 'a.b', 'shop', 'sluice.endpoint', 'a/b')
const glob = fc.oneof(
  word,
  fc.tuple(word, word).map(([source, type]) => `${source}/${type}`),
  fc.constantFrom('*', '**', 'a.*', 'shop/*', '*.b', 'sluice.endpoint.*'),
)

test('the index returns each matching endpoint once', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(glob, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
      word,
      word,
      (filters, source, type) => {
        const all = filters.map((filter, n) => endpoint(`ep_${n}`, filter))
        const event = eventOf(source, type)
        const asked = all.filter((one) => one.wants(event)).map(({ id }) => id)
        const found = new TenantEndpoints(all).matching(event)
        expect(found.toSorted()).toEqual(asked.toSorted())
      },
    ),
    { numRuns: 2_000 },
  )
})

test('ten thousand endpoints with other types are not evaluated', () => {
  let asked = 0
  const counted = (id: string, filter: readonly string[]): ReturnType<typeof endpoint> => {
    const one = endpoint(id, filter)
    return { ...one, wants: (event) => (asked++, one.wants(event)) }
  }
  const many = Array.from({ length: 10_000 }, (_, n) => counted(`ep_${n}`, [`version.${n}`, `shop/order.${n}`]))
  const endpoints = new TenantEndpoints([...many, counted('ep_all', ['**'])])
  expect(endpoints.matching(eventOf('app', 'version.7'))).toEqual(['ep_7', 'ep_all'])
  expect(endpoints.matching(eventOf('shop', 'order.8'))).toEqual(['ep_8', 'ep_all'])
  expect(endpoints.matching(eventOf('shop', 'other'))).toEqual(['ep_all'])
  expect(asked).toBe(5)
})
