// A store whose calls are timed, and whose limits are counted, on their way through.
import type { Clock } from '../clock.ts'
import type { ReserveCall, ReserveReply, Store } from '../store/contract/index.ts'
import type { Counted } from './metrics-catalogue.ts'

type Member = (call: never) => unknown
type Meters = Pick<Counted, 'storeTook' | 'storeFailures' | 'limitWaits' | 'limitCalls' | 'limitPutOffs'>

export function meteredStore(store: Store, clock: Clock, meters: Meters): Store {
  const metered = (member: Member, name: string, call: never): unknown => {
    const began = clock.monotonic()
    const answer: unknown = Reflect.apply(member, store, [call])
    if (!(answer instanceof Promise)) return answer
    return answer.then(
      (reply: unknown) => {
        meters.storeTook.seen((clock.monotonic() - began) / 1_000, name)
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
      return (call: never) => metered(member as Member, name, call)
    },
  })
}

function countSlots({ requests }: ReserveCall, { results }: ReserveReply, meters: Meters): void {
  for (const [at, result] of results.entries()) {
    for (const limit of requests[at]?.limits ?? []) {
      const name = baseOf(limit.name)
      if (result.kind === 'far') meters.limitPutOffs.add(1, name)
      else if (result.kind === 'granted') {
        if (result.wait === 0) meters.limitCalls.add(1, name)
        else meters.limitWaits.seen(result.wait / 1_000, name)
      }
    }
  }
}

/** `limit.per(key)` is called `limit/key`: a key is no label. */
export function baseOf(limit: string): string {
  const end = limit.indexOf('/')
  return end === -1 ? limit : limit.slice(0, end)
}
