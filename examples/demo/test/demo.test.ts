// Minutes of the demo in virtual time, on a real store: what it promises holds, with several seeds and over a restart.
import { describe, expect, it } from 'vitest'
import { checksOf, type Facts } from '../checks.ts'
import { runDemo, type Outcome } from '../demo.ts'
import type { Life } from '../life.ts'
import type { Deliver } from '../users.ts'
import { openStore, type Sluice, type Store } from 'sluice'
import { VirtualClock } from 'sluice/testing'
import { plainScreen } from '../screen.ts'
import { drive } from './drive.ts'

interface Shown extends Outcome {
  readonly lives: readonly Life[]
  readonly text: string
}

interface Stage {
  readonly clock: VirtualClock
  readonly store: Store
}

async function stage(): Promise<Stage> {
  const clock = new VirtualClock()
  return { clock, store: await openStore('memory:', { clock }) }
}

/** Without a socket: the same requests, in virtual time. */
const serve = (app: Sluice): Promise<Deliver> =>
  Promise.resolve(({ body, headers }) =>
    app.fetch(new Request('http://demo/in/tasks', { method: 'POST', body, headers })),
  )

async function shown({ clock, store }: Stage, seed: number, lasts = 60_000): Promise<Shown> {
  const lives: Life[] = []
  let text = ''
  const plain = plainScreen((more) => (text += more))
  const screen = {
    ...plain,
    news: (life: Life, since: number): void => {
      lives.push(life)
      plain.news(life, since)
    },
  }
  const stop = new AbortController().signal
  const outcome = await drive(clock, runDemo({ store, clock, screen, seed, lasts, stop, play: true, serve }))
  return { ...outcome, lives, text }
}

function expectToHold(facts: Facts): void {
  for (const check of checksOf(facts)) expect(check, check.says).toMatchObject({ held: true })
}

describe('a minute of the demo', () => {
  it.each([1, 2, 3, 4, 5])('holds what it promises, with seed %i', async (seed) => {
    const { facts, lives, deadRuns, retries } = await shown(await stage(), seed)
    expectToHold(facts)
    // It has something to show: runs of several events, a full limit, failures that are tried again, dead letters.
    expect(facts.handled).toBeGreaterThan(2 * lives.filter((life) => life.kind === 'done').length)
    expect(facts.mostCalls).toBe(3)
    expect(retries).toBeGreaterThan(deadRuns)
    expect(deadRuns).toBeGreaterThan(0)
    expect(lives.filter((life) => life.kind === 'dead').every((life) => life.user === 'poison')).toBe(true)
  })

  it('sees lanes wait in line, and events come during runs and go to the tail', async () => {
    const { lives } = await shown(await stage(), 1)
    expect(lives.some((life) => life.kind === 'due' && life.position >= 3)).toBe(true)
    expect(lives.some((life) => life.kind === 'received' && life.running)).toBe(true)
  })

  it('tells that a lane is due once, and before it is claimed', async () => {
    const { lives } = await shown(await stage(), 1)
    const open = new Set<string>()
    for (const { kind, user } of lives) {
      if (kind === 'due') {
        expect(open.has(user)).toBe(false)
        open.add(user)
      }
      if (kind === 'claimed') expect(open.delete(user)).toBe(true)
    }
  })

  it('prints a line for each thing that happens, and a table every five seconds', async () => {
    const { lives, text } = await shown(await stage(), 1, 11_000)
    const lines = text.split('\n')
    expect(lines.filter((line) => line.includes('events received'))).toHaveLength(2)
    for (const kind of ['received', 'due', 'claimed', 'done', 'retry']) {
      const told = lives.filter((life) => life.kind === kind).length
      expect(lines.filter((line) => line.slice(21, 29).trim() === kind)).toHaveLength(told)
    }
  })

  it('goes on where it stopped, when it is started again on the same store', async () => {
    const where = await stage()
    const first = await shown(where, 1, 9_000)
    const second = await shown(where, 2, 9_000)
    expect(first.facts.waiting).toBeGreaterThan(0)
    expect(second.facts.waitedBefore).toBe(first.facts.waiting)
    expectToHold(first.facts)
    expectToHold(second.facts)
  })
})
