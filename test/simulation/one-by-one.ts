// Stores on a server answer calls of the same time in any order. The model of the simulation predicts each reply, so its calls run one after
// the other.
import type { Store } from '../../src/store/contract/index.ts'

/** `oneByOne` returns the replies in the order of the calls. */
export function oneByOne(store: Store): Store {
  let last: Promise<unknown> = Promise.resolve()
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === 'listen' || name === 'close') return target[name].bind(target)
      // `await` reads `then` to find out whether a value is a promise.
      if (!(name in target)) return undefined
      const call = target[name].bind(target) as (argument: unknown) => Promise<unknown>
      return (argument: unknown) => {
        const answer = last.then(() => call(argument))
        last = answer.catch(() => {})
        return answer
      }
    },
  })
}
