// The lanes of an endpoint, one in each delivery, as its acts need them: held, let go, dropped, run now, replayed.
import type { Breakers } from './deliver/breakers.ts'
import type { EndpointsParts } from './deliver/endpoints.ts'
import type { Lane } from './model/lane.ts'
import type { DeadLetters } from './operate/dead-letters.ts'
import type { Hold, Lanes } from './operate/lanes.ts'
import type { FindReply, Store } from './store/contract/index.ts'

export interface EndpointLanesParts {
  readonly store: () => Promise<Store>
  readonly operated: () => { readonly lanes: Lanes; readonly deadLetters: DeadLetters }
  /** Their names. */
  readonly deliveries: () => Iterable<string>
  readonly breakers: Pick<Breakers, 'forget'>
  /** Whether nothing may be posted to it until a person says so: as it is in the store now, not as it was a moment ago. */
  readonly isHeld: (id: string) => Promise<boolean>
}

const PAGE = 1_000

export class EndpointLanes implements Readonly<EndpointsParts['lanes']> {
  readonly #parts: EndpointLanesParts

  constructor(parts: EndpointLanesParts) {
    this.#parts = parts
  }

  hold(id: string, reason: string, by: string): Promise<void> {
    return this.#each((_, name) => this.holdOne(name, id, { reason, by }))
  }

  /**
   * Who lets an endpoint go says so in the store, and then takes away the hold that is there. One that comes after that would stay
   * for good: so it is looked at once more when the hold is there.
   */
  async holdOne(name: string, id: string, hold: Hold): Promise<void> {
    const { operated, isHeld } = this.#parts
    const { lanes } = operated()
    await lanes.hold(name, id, hold)
    if (!(await isHeld(id))) await lanes.unhold(name, id)
  }

  /** A person has looked after it: it is tried at once, whatever its breaker says. */
  async letGo(id: string): Promise<void> {
    await this.#parts.breakers.forget(id)
    await this.#each(async (lanes, name) => {
      await lanes.unhold(name, id)
      await lanes.runNow(name, id)
    })
  }

  unhold(id: string): Promise<void> {
    return this.#each((lanes, name) => lanes.unhold(name, id))
  }

  async runAll(): Promise<number> {
    const store = await this.#parts.store()
    let triggered = 0
    await this.#each(async (lanes, name) => {
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow: name }, cursor, n: PAGE })
        for (const { id, run, hold, waiting, due } of page.items) {
          const isOpen = run === undefined && hold === undefined && waiting > 0 && due > page.now
          if (isOpen && (await lanes.steer(id, { kind: 'run-now' })) === 'ok') triggered++
        }
        cursor = page.next
      }
    })
    return triggered
  }

  async drop(id: string): Promise<number> {
    let dropped = 0
    await this.#each(async (lanes, name) => {
      const lane = await lanes.get(name, id)
      if ((await lanes.drop(name, id)) === 'ok') dropped += lane === undefined ? 0 : waitingIn(lane)
    })
    return dropped
  }

  async replay(id: string, letter: string | undefined): Promise<number | undefined> {
    const { operated, deliveries, store } = this.#parts
    const { deadLetters } = operated()
    if (letter !== undefined) {
      const { item } = await (await store()).get({ kind: 'dead', id: letter })
      if (item?.key !== id || ![...deliveries()].includes(item.flow)) return undefined
      return (await deadLetters.retry(letter)) === 'ok' ? 1 : 0
    }
    let count = 0
    for (const flow of deliveries()) {
      const retried = await deadLetters.retry({ flow, key: id })
      count += typeof retried === 'string' ? 0 : retried.count
    }
    return count
  }

  async #each(act: (lanes: Lanes, name: string) => Promise<unknown>): Promise<void> {
    for (const name of this.#parts.deliveries()) await act(this.#parts.operated().lanes, name)
  }
}

/** A run between its tries is dropped with what waits behind it. */
function waitingIn({ waiting, run }: Lane): number {
  return waiting + (run === undefined || run.state === 'running' ? 0 : run.events)
}
