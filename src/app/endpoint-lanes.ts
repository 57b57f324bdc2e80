// `EndpointLanes` steers the lanes of an endpoint, one per delivery: it holds, releases, drops, runs and replays them.
import type { Millis } from '../clock.ts'
import type { BreakerStore } from '../deliver/health/breaker-store.ts'
import type { EndpointsDependencies } from '../deliver/endpoints.ts'
import type { Lane } from '../model/lane.ts'
import type { DeadLetters } from '../admin/dead-letters.ts'
import type { HoldOptions, Lanes } from '../admin/lanes.ts'
import type { FindReply, Store } from '../store/contract/index.ts'

export interface EndpointLanesDependencies {
  readonly store: () => Promise<Store>
  readonly admin: () => { readonly lanes: Lanes; readonly deadLetters: DeadLetters }
  /** The names of the deliveries. */
  readonly deliveryNames: () => Iterable<string>
  readonly breakers: Pick<BreakerStore, 'forget' | 'probeNow'>
  /** Whether the endpoint waits for a person before it gets posts, read from the store and not from a cache. */
  readonly isHeld: (id: string) => Promise<boolean>
}

const PAGE = 1_000

export class EndpointLanes implements Readonly<EndpointsDependencies['lanes']> {
  readonly #deps: EndpointLanesDependencies

  constructor(parts: EndpointLanesDependencies) {
    this.#deps = parts
  }

  hold(id: string, reason: string, by: string): Promise<void> {
    return this.#each((_, name) => this.holdOne(name, id, { reason, by }))
  }

  /**
   * A release first updates the endpoint in the store and then removes the hold. A hold added after that would stay for good, so this
   * function checks the endpoint again after it added the hold.
   */
  async holdOne(name: string, id: string, hold: HoldOptions): Promise<void> {
    const { admin: operated, isHeld } = this.#deps
    const { lanes } = operated()
    await lanes.hold(name, id, hold)
    if (!(await isHeld(id))) await lanes.unhold(name, id)
  }

  /** After a person acted on the endpoint, the next post goes out at once, even if the breaker is open. */
  async resume(id: string): Promise<void> {
    await this.#deps.breakers.forget(id)
    await this.#each(async (lanes, name) => {
      await lanes.unhold(name, id)
      await lanes.runNow(name, id)
    })
  }

  /** The batch that waits for the breaker becomes the probe and is due now. Without one, the retried dead letter is the probe. */
  async probe(name: string, id: string, now: Millis): Promise<void> {
    if (!(await this.#deps.breakers.probeNow(id, now))) return
    const { lanes } = this.#deps.admin()
    if ((await lanes.get(name, id))?.run !== undefined) await lanes.runNow(name, id)
  }

  unhold(id: string): Promise<void> {
    return this.#each((lanes, name) => lanes.unhold(name, id))
  }

  async runAll(): Promise<number> {
    const store = await this.#deps.store()
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
      if ((await lanes.drop(name, id)) === 'ok') dropped += lane === undefined ? 0 : countWaiting(lane)
    })
    return dropped
  }

  async replay(id: string, letter: string | undefined): Promise<number | undefined> {
    const { admin: operated, deliveryNames: deliveries, store } = this.#deps
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
    for (const name of this.#deps.deliveryNames()) await act(this.#deps.admin().lanes, name)
  }
}

/** A run between attempts is dropped together with the events that wait behind it. */
function countWaiting({ waiting, run }: Lane): number {
  return waiting + (run === undefined || run.state === 'running' ? 0 : run.events)
}
