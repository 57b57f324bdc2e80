// A check that cannot fail proves nothing: each is made to fail by what it is there to find.
import { describe, expect, it } from 'vitest'
import { CallMeter } from '../call-meter.ts'
import { checksOf, type Facts } from '../checks.ts'
import { Ledger } from '../ledger.ts'
import type { Life } from '../life.ts'

const GOOD: Facts = {
  received: 10,
  handled: 6,
  strays: 0,
  claims: 5,
  overlaps: 0,
  mostAtOnce: 1,
  inversions: 0,
  calls: 20,
  mostCalls: 3,
  waitedBefore: 0,
  waiting: 3,
  dead: 1,
}

function failing(facts: Partial<Facts>): readonly string[] {
  return checksOf({ ...GOOD, ...facts })
    .filter((check) => !check.held)
    .map((check) => check.name)
}

describe('the checks', () => {
  it('hold for figures that add up', () => {
    expect(failing({})).toEqual([])
    expect(failing({ waitedBefore: 4, waiting: 7 })).toEqual([])
    expect(checksOf(GOOD)[0]?.says).toBe('10 received = 6 handled + 3 waiting + 1 dead')
  })

  it('find an event that is lost, one that came from nowhere, and a loss hidden by a double', () => {
    expect(failing({ waiting: 2 })).toEqual(['no event lost'])
    expect(failing({ waiting: 4 })).toEqual(['no event lost'])
    expect(failing({ strays: 1 })).toEqual(['no event lost'])
  })

  it('find an overlap, a call too many and an inversion', () => {
    expect(failing({ overlaps: 1 })).toEqual(['one run per user at once'])
    expect(failing({ mostCalls: 4 })).toEqual(['3 calls in any second'])
    expect(failing({ inversions: 1 })).toEqual(['first ready first served'])
  })
})

const event = (id: string): { id: string; arrived: number } => ({ id, arrived: 1_000 })
const received = (user: string, id: string): Life => ({
  kind: 'received',
  at: 1_000,
  user,
  id,
  waiting: 1,
  dueIn: 2_000,
  running: false,
})
const claimed = (user: string, due: number): Life => ({ kind: 'claimed', at: due, user, due, attempt: 1, events: [] })
const done = (user: string, ...ids: readonly string[]): Life => ({
  kind: 'done',
  at: 5_000,
  user,
  events: ids.map(event),
  calls: 2,
  ms: 900,
})

function ledgerOf(...lives: readonly Life[]): Ledger {
  const ledger = new Ledger(1_000)
  for (const life of lives) ledger.note(life)
  return ledger
}

describe('the ledger', () => {
  it('counts what is received and handled', () => {
    const ledger = ledgerOf(received('ada', 'a'), received('ada', 'b'), claimed('ada', 3_000), done('ada', 'a', 'b'))
    expect(ledger.facts()).toMatchObject({ received: 2, handled: 2, claims: 1, strays: 0, mostAtOnce: 1 })
    expect(ledger.past('ada')).toEqual({ runs: 1, last: '2 events, 2 calls, 0.9 s' })
    expect(ledger.past('ben')).toEqual({ runs: 0, last: '' })
  })

  it('finds an event that is handled twice, and one that nobody sent', () => {
    expect(ledgerOf(received('ada', 'a'), done('ada', 'a'), done('ada', 'a')).strays).toBe(1)
    expect(ledgerOf(done('ada', 'x')).strays).toBe(1)
  })

  it('does not mind in which order the end and the receipt of an event are told', () => {
    expect(ledgerOf(done('ada', 'a'), received('ada', 'a')).strays).toBe(0)
  })

  it('leaves events that were there before to the store', () => {
    const ledger = new Ledger(2_000)
    ledger.note(done('ada', 'old'))
    expect(ledger.facts()).toMatchObject({ handled: 1, strays: 0 })
  })

  it('finds a user that runs twice at once, but not two users, nor one after the other', () => {
    expect(ledgerOf(claimed('ada', 1), claimed('ada', 2)).overlaps).toBe(1)
    expect(ledgerOf(claimed('ada', 1), claimed('ben', 2))).toMatchObject({ overlaps: 0, mostAtOnce: 2 })
    expect(ledgerOf(claimed('ada', 1), done('ada'), claimed('ada', 2)).overlaps).toBe(0)
  })

  it('finds a lane that is served after one that was ready later', () => {
    expect(ledgerOf(claimed('ada', 10), claimed('ben', 10), claimed('cleo', 11)).inversions).toBe(0)
    expect(ledgerOf(claimed('ada', 10), claimed('ben', 9), claimed('cleo', 9)).inversions).toBe(2)
  })
})

describe('the meter of calls', () => {
  it('finds the fullest second, wherever it begins', () => {
    const meter = new CallMeter()
    for (const at of [900, 950, 1_000, 1_899.5, 1_900]) meter.add(at)
    expect(meter).toMatchObject({ total: 5, most: 4 })
    expect(meter.within(2_500)).toBe(2)
  })

  it('takes calls exactly a second apart for two seconds', () => {
    const meter = new CallMeter()
    for (const at of [0, 0, 0, 1_000, 1_000, 1_000]) meter.add(at)
    expect(meter.most).toBe(3)
  })
})
