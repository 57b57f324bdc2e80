// Many groups (L5g): SQLite keeps an index of them, while memory reads every lane each time. For the same history, both serve
// the same lanes in the same order.
import { describe, expect, it } from 'vitest'
import {
  createClaimRequest,
  DAY,
  dead,
  done,
  createRetentionPolicy,
  createEventToStore,
  retry,
} from '../conformance/builders.ts'
import type { LeasedRun, Store } from '../../src/store/contract/index.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { VirtualClock } from '../simulation/virtual-clock.ts'
import { event, open, send } from './scratch.ts'

const HISTORIES = 100
const STEPS = 150
const GROUPS = 30
const LEASE = 400

/** Numbers below n, the same for the same seed. */
function dice(seed: number): (n: number) => number {
  let state = seed + 1
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

interface Side {
  readonly store: Store
  held: readonly LeasedRun[]
}

class History {
  readonly #roll: (n: number) => number
  readonly #clock: VirtualClock
  readonly #sides: readonly [Side, Side]
  #request = 0
  #names = 0
  turns = 0
  served = 0

  constructor(seed: number, clock: VirtualClock, stores: readonly [Store, Store]) {
    this.#roll = dice(seed)
    this.#clock = clock
    this.#sides = [
      { store: stores[0], held: [] },
      { store: stores[1], held: [] },
    ]
  }

  async step(): Promise<void> {
    const what = this.#roll(20)
    if (what < 7) await this.#append()
    else if (what < 15) await this.#turn()
    else if (what < 18) this.#clock.advance([1, 50, 100, LEASE][this.#roll(4)] ?? 0)
    else if (what === 18) await this.#seldom()
    else this.#clock.jump([-100, -LEASE, 60][this.#roll(3)] ?? 0)
  }

  async #append(): Promise<void> {
    const events = Array.from({ length: 1 + this.#roll(12) }, () => {
      const n = this.#roll(GROUPS)
      const group = n === 0 ? '' : `g${n}`
      const quiet = [0, 0, 50, 200][this.#roll(4)] ?? 0
      return createEventToStore(
        `e${this.#names}`,
        { id: `e${this.#names++}`, key: `${group}/${this.#roll(4)}`, group, quiet },
        0,
      )
    })
    for (const { store } of this.#sides) await store.append({ routes: 1, events })
  }

  async #turn(): Promise<void> {
    const [outcome, attempt] = (
      [
        [done, undefined],
        [done, undefined],
        [retry(50), { at: 0, ms: 1, error: 'failed' }],
        [dead, { at: 0, ms: 1, error: 'failed' }],
      ] as const
    )[this.#roll(4)] ?? [done, undefined]
    const settles = this.#roll(4)
    const claim = createClaimRequest({
      maxRuns: this.#roll(8),
      maxFailing: this.#roll(3),
      maxSuspects: this.#roll(2),
      maxPerGroup: 1 + this.#roll(3),
      lease: LEASE,
    })
    this.#request++
    const answers: unknown[] = []
    for (const side of this.#sides) {
      const settle = side.held
        .slice(0, settles)
        .map(
          ({ lane, token }) =>
            ({ lane, token, outcome, attempt, whileRunning: 'window', keep: 0, publish: [] }) as const,
        )
      const call = { process: 'p', request: this.#request, routes: 1, settle, claim: [claim], budget: 0 }
      const { settled, claimed, crashed, nextDeadlines: heads } = await side.store.settleAndClaim(call)
      side.held = [...side.held.slice(settles), ...claimed]
      answers.push({ settled, keys: claimed.map(({ key }) => key), crashed: crashed.length, heads })
      this.served += claimed.length
    }
    this.turns++
    expect(answers[1], `turn ${this.turns}`).toEqual(answers[0])
  }

  /** The steps after which groups are forgotten or rebuilt. */
  async #seldom(): Promise<void> {
    if (this.#roll(2) === 0) {
      const broken = { ...event(`broken ${this.#names++}`), body: 'no bytes' as unknown as Uint8Array }
      await expect(send(this.#sides[1].store, broken)).rejects.toMatchObject({ code: 'STORE_FAILED' })
      return
    }
    this.#clock.advance(this.#roll(3) === 0 ? DAY : 50)
    for (const { store } of this.#sides) await store.maintain({ budget: 1_000, policy: createRetentionPolicy() })
  }
}

describe('many groups', () => {
  it(`are served in the same order as in memory, in ${HISTORIES} histories`, async () => {
    const counts = { turns: 0, served: 0 }
    for (let seed = 0; seed < HISTORIES; seed++) {
      const clock = new VirtualClock(1_700_000_000_000)
      const history = new History(seed, clock, [openMemoryStore({ clock }), await open(':memory:', { clock })])
      try {
        for (let step = 0; step < STEPS; step++) await history.step()
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error })
      }
      counts.turns += history.turns
      counts.served += history.served
    }
    expect(counts.served).toBeGreaterThan(counts.turns)
  })
})
