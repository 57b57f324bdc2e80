// A wrapper around a store that times its calls and counts the use of its limits.
import type { Clock } from '../../clock.ts'
import type { ReserveCall, ReserveReply, Store } from '../../store/contract/index.ts'
import type { ProcessMetrics } from './catalogue.ts'

type StoreMember = (call: never) => unknown
type StoreMeters = Pick<
  ProcessMetrics,
  'storeSeconds' | 'storeFailures' | 'limitWaits' | 'limitCalls' | 'limitDeferrals'
>

export function meteredStore(store: Store, clock: Clock, meters: StoreMeters): Store {
  const metered = (member: StoreMember, name: string, call: never): unknown => {
    const began = clock.monotonic()
    const answer: unknown = Reflect.apply(member, store, [call])
    if (!(answer instanceof Promise)) return answer
    return answer.then(
      (reply: unknown) => {
        meters.storeSeconds.observe((clock.monotonic() - began) / 1_000, name)
        if (name === 'reserve') countSlots(call, reply as ReserveReply, meters)
        return reply
      },
      (error: unknown) => {
        meters.storeFailures.add(1, name)
        throw error
      },
    )
  }
  return new Proxy(store, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      return (call: never) => metered(member as StoreMember, name, call)
    },
  })
}

function countSlots({ requests }: ReserveCall, { results }: ReserveReply, meters: StoreMeters): void {
  for (const [at, result] of results.entries()) {
    for (const limit of requests[at]?.limits ?? []) {
      const name = limitLabel(limit.name)
      if (result.kind === 'far') meters.limitDeferrals.add(1, name)
      else if (result.kind === 'granted') {
        if (result.wait === 0) meters.limitCalls.add(1, name)
        else meters.limitWaits.observe(result.wait / 1_000, name)
      }
    }
  }
}

/** `limitLabel` maps `limit.per(key)` to `limit/key`: a real key must not become a label. */
export function limitLabel(limit: string): string {
  const end = limit.indexOf('/')
  return end === -1 ? limit : limit.slice(0, end)
}
