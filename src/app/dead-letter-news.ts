// `DeadLetterNews` knows whether any flow takes `sluice/run.dead` events. Without such a flow, no dead letter causes an event.
import { createMatcher } from '../flow/globs.ts'
import { DEAD_LETTER_TYPE } from '../model/dead-letter-event.ts'
import { ENGINE_SOURCE } from '../model/event.ts'
import type { Flow } from '../model/flow.ts'
import type { FlowRegistry } from '../flow/registry.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { StoreClock } from '../dispatch/store-clock.ts'
import type { DeathNotice } from '../model/settle.ts'

const ALWAYS: DeathNotice = -1
/** What the other processes match: they have only the globs, and a predicate takes every event that it might want. */
const PROBE = new FlowEvent({
  id: DEAD_LETTER_TYPE,
  source: ENGINE_SOURCE,
  type: DEAD_LETTER_TYPE,
  time: 0,
  tenant: '',
  subject: '',
  attributes: '',
  body: new Uint8Array(),
})

export class DeadLetterNews {
  readonly #registry: Pick<FlowRegistry, 'foreign' | 'epoch' | 'refresh'>
  readonly #storeClock: Pick<StoreClock, 'routesEpoch'>
  readonly #isWantedHere: boolean
  /** The result for the last list of foreign flows, because each claim asks. */
  #elsewhere: { readonly foreign: FlowRegistry['foreign']; readonly isWanted: boolean } | undefined

  constructor(
    flows: Iterable<Flow>,
    registry: Pick<FlowRegistry, 'foreign' | 'epoch' | 'refresh'>,
    storeClock: Pick<StoreClock, 'routesEpoch'>,
  ) {
    this.#registry = registry
    this.#storeClock = storeClock
    this.#isWantedHere = Array.from(flows).some((flow) => mayTake(flow, DEAD_LETTER_TYPE))
  }

  /** What this process knows without a call to the store. It is for claims, which happen all the time. */
  get notice(): DeathNotice {
    return this.isWanted ? ALWAYS : this.#registry.epoch
  }

  get isWanted(): boolean {
    if (this.#isWantedHere) return true
    const { foreign } = this.#registry
    if (this.#elsewhere?.foreign !== foreign)
      this.#elsewhere = { foreign, isWanted: foreign.some((flow) => flow.wants(PROBE)) }
    return this.#elsewhere.isWanted
  }

  /** `readNotice` first reads the flows again if the routes have changed since. If that fails, the store decides by the older epoch. */
  async readNotice(): Promise<DeathNotice> {
    if (!this.isWanted && this.#storeClock.routesEpoch > this.#registry.epoch)
      await this.#registry.refresh().catch(() => {})
    return this.notice
  }
}

/** `mayTake` returns whether a flow may take an event of the engine. Only a stored event can show what a predicate returns. */
export function mayTake({ globs, isDelivery, isInternal }: Flow, type: string): boolean {
  if (isInternal || (isDelivery && globs === undefined)) return false
  if (globs === undefined) return true
  return createMatcher(globs, 'on', isDelivery ? 'published' : 'every-source')({ source: ENGINE_SOURCE, type })
}
