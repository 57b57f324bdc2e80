// M2, M3, M7: callers that wait while a limit is paused, resumed or left, in the memory store. Whatever happens to their
// slots, the calls respect the rate and their order.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import type { LimitParameters } from '../../src/model/limit.ts'
import type { RegulateCall, Store } from '../../src/store/contract/index.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { mostWithin, shape, type Call } from './limit-driver.ts'

type Step =
  | { readonly kind: 'come'; readonly calls: number }
  | { readonly kind: 'pass'; readonly share: number }
  | { readonly kind: 'pause'; readonly share: number; readonly slow: boolean }
  | { readonly kind: 'resume' }
  | { readonly kind: 'leave'; readonly calls: number }

const few = fc.integer({ min: 1, max: 12 })
const share = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1.3, noNaN: true }))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('come'), calls: few }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass'), share }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pause'), share, slow: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'resume' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('leave'), calls: few }) },
)

/** Callers that ask again exactly when their time has come. */
class Callers {
  readonly calls: (Call & { readonly ticket: number })[] = []
  readonly #clock = new VirtualClock()
  readonly #store: Store = openMemoryStore({ clock: this.#clock })
  readonly #numbers: LimitParameters
  #waiting: { readonly ticket: number; readonly at: Millis }[] = []
  #tickets = 0
  pausedUntil = 0

  constructor(numbers: Omit<LimitParameters, 'cost'>) {
    this.#numbers = { ...numbers, cost: 1 }
  }

  async #ask(ticket: number): Promise<void> {
    const limits = [{ ...this.#numbers, name: 'api' }]
    const { results } = await this.#store.reserve({
      requests: [{ ticket: String(ticket), limits, maxWait: Number.MAX_SAFE_INTEGER }],
    })
    const [answer] = results
    if (answer?.kind !== 'granted') throw new Error('It was refused.')
    const now = this.#clock.now()
    this.#waiting = this.#waiting.filter((other) => other.ticket !== ticket)
    if (answer.wait > 0) this.#waiting.push({ ticket, at: now + answer.wait })
    else {
      expect(now).toBeGreaterThanOrEqual(this.pausedUntil)
      this.calls.push({ at: now, cost: 1, ticket })
    }
  }

  async #regulate(act: RegulateCall['act']): Promise<boolean> {
    const { released } = await this.#store.regulate({ name: 'api', act })
    if (act.kind !== 'release') for (const { ticket } of this.#inOrder()) await this.#ask(ticket)
    return released
  }

  #inOrder(): readonly { readonly ticket: number; readonly at: Millis }[] {
    return this.#waiting.toSorted((one, other) => one.ticket - other.ticket)
  }

  async pass(ms: Millis): Promise<void> {
    const end = this.#clock.now() + ms
    for (;;) {
      const [next] = this.#inOrder().toSorted((one, other) => one.at - other.at)
      if (next === undefined || next.at > end) break
      this.#clock.advance(next.at - this.#clock.now())
      await this.#ask(next.ticket)
    }
    this.#clock.advance(end - this.#clock.now())
  }

  async perform(what: Step): Promise<void> {
    const { per } = this.#numbers
    if (what.kind === 'come') for (let n = 0; n < what.calls; n++) await this.#ask(++this.#tickets)
    else if (what.kind === 'pass') await this.pass(Math.floor(what.share * per))
    else if (what.kind === 'pause') {
      const time = Math.floor(what.share * per)
      this.pausedUntil = Math.max(this.pausedUntil, this.#clock.now() + time)
      await this.#regulate({ kind: 'pause', for: time, slow: what.slow })
    } else if (what.kind === 'resume') {
      this.pausedUntil = 0
      await this.#regulate({ kind: 'resume' })
    } else {
      for (let n = 0; n < what.calls; n++) {
        const [oldest, ...others] = this.#inOrder()
        const newest = others.at(-1) ?? oldest
        // A later slot was granted, so this one is not returned.
        if (oldest !== undefined && newest !== oldest) {
          expect(await this.#regulate({ kind: 'release', ticket: String(oldest.ticket) })).toBe(false)
        }
        if (newest === undefined || !(await this.#regulate({ kind: 'release', ticket: String(newest.ticket) }))) return
        this.#waiting = this.#waiting.filter((other) => other !== newest)
      }
    }
  }

  get someoneWaits(): boolean {
    return this.#waiting.length > 0
  }
}

function mostOver(calls: readonly Call[], { rate, per, burst }: Omit<LimitParameters, 'cost'>): number {
  if (burst === 0) return mostWithin(calls, per) - rate
  let over = Number.NEGATIVE_INFINITY
  for (const [n, first] of calls.entries()) {
    for (const [more, last] of calls.slice(n).entries()) {
      over = Math.max(over, more + 1 - burst - (rate * (last.at - first.at)) / per)
    }
  }
  return over
}

describe('M2, M3 and M7: waiting callers', () => {
  it('make their calls within the limit and in their order, and none before a pause ends', async () => {
    await fc.assert(
      fc.asyncProperty(shape, fc.array(step, { maxLength: 25 }), async (numbers, steps) => {
        const callers = new Callers(numbers)
        for (const what of steps) await callers.perform(what)
        for (let n = 0; n < 500 && callers.someoneWaits; n++) await callers.pass(2 * numbers.per)
        expect(callers.someoneWaits).toBe(false)
        expect(mostOver(callers.calls, numbers)).toBeLessThanOrEqual(0.01)
        const order = callers.calls.map(({ ticket }) => ticket)
        expect(order).toEqual(order.toSorted((one, other) => one - other))
      }),
      { numRuns: 300 },
    )
  })
})
