// The ledger of processes side by side reports violations, and accepts what a correct engine cannot avoid.
import { describe, expect, it } from 'vitest'
import { Ledger, type LifeHeard } from './ledger.ts'
import type { Line } from './load.ts'

type Turned = Line & { readonly kind: 'turned' }

const PLACE = { flow: 'single', key: 'k1', events: [] }

function entered(at: number, run = 'r'): Line {
  return { kind: 'entered', at, run, attempt: 1, step: 0, ...PLACE }
}

function left(at: number, run = 'r'): Line {
  return { kind: 'left', at, run, how: 'done' }
}

function again(at: number): Line {
  return { kind: 'left', at, run: 'r', how: 'again' }
}

function told(at: number, name: string, run = 'r'): Line {
  return { kind: 'told', at, name, run }
}

function turned(at: number, words: Partial<Turned>): Line {
  return { kind: 'turned', sent: at - 5, at, settled: [], claimed: [], ...words }
}

function life(number: number, lines: readonly Line[], words: Partial<LifeHeard> = {}): LifeHeard {
  return { life: number, lines, ended: 10_000, stops: [], ...words }
}

function complaintsOf(...lives: readonly LifeHeard[]): string {
  const ledger = new Ledger()
  ledger.hearTogether(lives)
  return ledger.complaints.first.join('\n')
}

describe('the ledger of lives side by side', () => {
  const other = life(2, [entered(1_500), left(1_600), told(1_610, 'run.done')])

  it('reports two handlers of a lane at once', () => {
    const long = life(1, [entered(100), left(900)])
    expect(complaintsOf(long, life(2, [entered(500, 's'), left(600, 's')]))).toContain('overlapping')
    expect(complaintsOf(long, life(2, [entered(901, 's'), left(950, 's')]))).toBe('')
  })

  it('accepts a second handler if the first process stalled and was notified as soon as it continued', () => {
    const lines = [entered(100), left(2_000), told(2_001, 'run.lost')]
    expect(complaintsOf(life(1, lines, { stops: [{ from: 200, to: 1_900 }] }), other)).toBe('')
    expect(complaintsOf(life(1, [...lines, { kind: 'stalled', from: 200, at: 1_999 }]), other)).toBe('')
    expect(complaintsOf(life(1, lines, { stops: [{ from: 200, to: 1_000 }] }), other)).toContain('overlapping')
  })

  it('accepts a second handler if the first process is dead', () => {
    expect(complaintsOf(life(1, [entered(100)], { ended: 300 }), other)).toBe('')
    expect(complaintsOf(life(1, [entered(100)], { ended: 1_550 }), other)).toContain('overlapping')
  })

  it('reports a handler that starts after the end of its run', () => {
    expect(complaintsOf(life(1, [entered(1_700)]), other)).toContain('runs after its end')
  })

  it('accepts a handler whose process stalled between its claim and the end of its lease, but not its settlement', () => {
    const stopped = { stops: [{ from: 110, to: 1_690 }] }
    const late = [told(100, 'run.claimed'), entered(1_700), left(1_710)]
    expect(complaintsOf(life(1, [...late, told(1_720, 'run.lost')], stopped), other)).toBe('')
    const slow = life(2, [entered(1_500), left(1_600), told(1_800, 'run.done')])
    expect(complaintsOf(life(1, [...late, told(1_720, 'run.lost')], stopped), slow)).toBe('')
    expect(complaintsOf(life(1, [...late, told(1_720, 'run.done')], stopped), other)).toContain('was accepted')
    // The process got the run after the stall, or the stall was too short.
    const fresh = [told(1_695, 'run.claimed'), entered(1_700)]
    expect(complaintsOf(life(1, fresh, stopped), other)).toContain('runs after its end')
    const brief = { stops: [{ from: 110, to: 900 }] }
    expect(complaintsOf(life(1, late, brief), other)).toContain('runs after its end')
  })

  it('reports the settlement of a run that was given to another process', () => {
    const stopped = { stops: [{ from: 200, to: 1_900 }] }
    const stale = life(1, [entered(100), left(2_000), told(2_010, 'run.done')], stopped)
    expect(complaintsOf(stale, other)).toContain('was accepted')
    expect(complaintsOf(stale, life(2, [entered(1_500), left(2_100)]))).toContain('was accepted')
  })

  it('accepts a late report of an attempt, even if another process had the run in between', () => {
    const stopped = { stops: [{ from: 200, to: 1_900 }] }
    const at = (time: number, step: number): Line => ({ ...entered(time), step }) as Line
    const others = (last: number): LifeHeard =>
      life(2, [entered(1_500), again(1_600), told(1_610, 'run.snoozed'), at(2_400, last)])
    const late = [entered(100), again(1_950), at(2_000, 1), told(2_010, 'run.lost')]
    const settled = life(1, [...late, again(2_100), told(2_110, 'run.snoozed')], stopped)
    expect(complaintsOf(settled, others(2))).toBe('')
    // The attempt may have ended before the other process got the run; its settlement was in progress or not yet sent.
    const waiting = [entered(100), again(150), at(2_000, 1), told(2_010, 'run.lost')]
    const waited = life(1, [...waiting, again(2_100), told(2_110, 'run.snoozed')], stopped)
    expect(complaintsOf(waited, others(2))).toBe('')
    // It does not excuse an attempt that was not settled.
    expect(complaintsOf(settled, others(3))).toContain('step 3')
    expect(complaintsOf(settled, others(1))).toContain('lost')
  })

  it('accepts a late report of an attempt, even if the run has started again in the same process', () => {
    const before = [entered(100), left(200), entered(1_300), told(1_350, 'run.lost')]
    expect(complaintsOf(life(1, [...before, left(1_400), told(1_410, 'run.done')]))).toBe('')
    expect(complaintsOf(life(1, [...before, left(1_400), told(1_410, 'run.done'), entered(1_500)]))).toContain(
      'runs after its end',
    )
  })

  it('reports a settlement that the store accepts after it gave the lane to another process', () => {
    const given = [turned(100, { claimed: [['l', 1]] }), turned(1_500, { claimed: [['l', 2]] })]
    expect(complaintsOf(life(1, [...given, turned(1_600, { settled: [['l', 2, 'ok']] })]))).toBe('')
    expect(complaintsOf(life(1, [...given, turned(1_600, { settled: [['l', 1, 'lost']] })]))).toBe('')
    expect(complaintsOf(life(1, [...given, turned(1_600, { settled: [['l', 1, 'ok']] })]))).toContain('had begun')
    expect(complaintsOf(life(1, [{ kind: 'stale', at: 1, lane: 'l', token: 1, answer: 'ok' }]))).toContain('accepted')
  })
})
