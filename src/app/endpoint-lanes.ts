// `EndpointLanes` steers the lanes of an endpoint, one per delivery: it holds, releases, drops, runs and replays them.
import { NEVER, type Millis } from '../clock.ts'
import type { BreakerStore } from '../deliver/health/breaker-store.ts'
import { holdReason } from '../deliver/delivery.ts'
import type { EndpointDocs } from '../deliver/endpoint-docs.ts'
import type { SteerableLanes } from '../deliver/endpoint-steering.ts'
import type { ReplayRange } from '../deliver/endpoint-replay.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { Admin } from '../admin/admin.ts'
import type { DeadLetter, DeadLetterFilter } from '../admin/dead-letters.ts'
import type { Page } from '../admin/pages.ts'
import type { HoldOptions, Lanes } from '../admin/lanes.ts'
import type { FindReply, Store } from '../store/contract/index.ts'

export interface EndpointLanesDependencies {
  readonly store: () => Promise<Store>
  readonly admin: () => Pick<Admin, 'lanes' | 'deadLetters' | 'replays'>
  /** The deliveries by name. */
  readonly deliveries: ReadonlyMap<string, unknown>
  readonly docs: EndpointDocs
  readonly breakers: BreakerStore
}

const PAGE = 1_000

export class EndpointLanes implements SteerableLanes {
  readonly #deps: EndpointLanesDependencies

  constructor(deps: EndpointLanesDependencies) {
    this.#deps = deps
  }

  hold(id: string, reason: string, by: string): Promise<void> {
    return this.#each((_, name) => this.holdOne(name, id, { reason, by }))
  }

  /** A release first updates the endpoint and then ends the hold. A hold added after that is ended here. */
  async holdOne(name: string, id: string, hold: HoldOptions): Promise<void> {
    const { lanes } = this.#deps.admin()
    await lanes.hold(name, id, hold)
    if (!(await this.#isHeld(id))) await lanes.unhold(name, id)
  }

  /** Whether the endpoint waits for a person before it gets posts, read from the store and not from a cache. */
  async #isHeld(id: string): Promise<boolean> {
    const { docs, breakers } = this.#deps
    const [{ value: kept }, breakerOf] = await Promise.all([docs.read(id), breakers.getAll([id])])
    return kept !== undefined && (holdReason(kept) !== undefined || breakerOf.get(id)?.kind === 'disabled')
  }

  /** After a person acted on the endpoint, the next post goes out at once, even if the breaker is open. */
  async resume(id: string): Promise<void> {
    await this.#deps.breakers.forget(id)
    await this.#each(async (lanes, name) => {
      await lanes.unhold(name, id)
      const lane = await lanes.get(name, id)
      if (lane !== undefined && !(await this.isHeldBack(lane))) await lanes.runNow(name, id)
    })
  }

  /** A window without an end may also be the delivery's own, so the endpoint decides. */
  async isHeldBack({ flow, key, run, waiting, window }: Lane): Promise<boolean> {
    if (run !== undefined || waiting === 0 || window !== NEVER || !this.#deps.deliveries.has(flow)) return false
    return (await this.#deps.docs.read(key)).value?.history !== undefined
  }

  /** After its history, the live events of the endpoint are due. */
  async release(id: string): Promise<void> {
    const store = await this.#deps.store()
    const ids = [...this.#deps.deliveries.keys()].map((name) => laneId(name, id))
    await store.steer({ what: 'lanes', ids, act: { kind: 'run-now' } })
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
        for (const lane of page.items) {
          const { id, run, hold, waiting, due } = lane
          const isOpen = run === undefined && hold === undefined && waiting > 0 && due > page.now
          if (isOpen && !(await this.isHeldBack(lane)) && (await lanes.steer(id, { kind: 'run-now' })) === 'ok')
            triggered++
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

  async retryDeadLetter(id: string, deadLetter: string): Promise<number | undefined> {
    const { admin, deliveries, store } = this.#deps
    const { item } = await (await store()).get({ kind: 'dead', id: deadLetter })
    if (item?.key !== id || !deliveries.has(item.flow)) return undefined
    return (await admin().deadLetters.retry(deadLetter)) === 'ok' ? 1 : 0
  }

  async retryDeadLetters(id: string, { type, ...times }: ReplayRange): Promise<number> {
    const { admin, deliveries } = this.#deps
    const { deadLetters } = admin()
    let count = 0
    for (const flow of deliveries.keys()) {
      const filter = { flow, key: id, ...times }
      if (type !== undefined) count += await this.#retryWithType(filter, type)
      else {
        const retried = await deadLetters.retry(filter)
        count += typeof retried === 'string' ? 0 : retried.count
      }
    }
    return count
  }

  async #retryWithType(filter: DeadLetterFilter, type: string): Promise<number> {
    const { admin, store } = this.#deps
    const { deadLetters } = admin()
    const opened = await store()
    const hasType = async (event: string): Promise<boolean> =>
      (await opened.get({ kind: 'events', id: event })).item?.type === type
    let count = 0
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Page<DeadLetter> = await deadLetters.list(filter, cursor)
      for (const { id, events } of page.items) {
        const found = await Promise.all(events.map(hasType))
        if (found.includes(true) && (await deadLetters.retry(id)) === 'ok') count++
      }
      cursor = page.next
    }
    return count
  }

  async #each(act: (lanes: Lanes, name: string) => Promise<unknown>): Promise<void> {
    for (const name of this.#deps.deliveries.keys()) await act(this.#deps.admin().lanes, name)
  }
}

/** A run between attempts is dropped together with the events that wait behind it. */
function countWaiting({ waiting, run }: Lane): number {
  return waiting + (run === undefined || run.state === 'running' ? 0 : run.events)
}
