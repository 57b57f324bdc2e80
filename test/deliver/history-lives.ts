// Sends a new endpoint its history while 500 events a second arrive and the process is killed again and again, and checks that it
// gets every event, in order, history first.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { FromChild, ToChild } from './history-child.ts'
import { subscriber } from './subscriber.ts'

const CHILD = fileURLToPath(new URL('./history-child.ts', import.meta.url))
const BEFORE = 1_500
/** After how many further POSTs each life ends. The first of them end in the middle of the history. */
const POSTS_OF_LIVES = [3, 7, 1, 12, 5] as const

class Life {
  readonly #child: ChildProcess
  readonly #heard: FromChild[] = []
  acked = 0

  constructor(store: string, first: number, most: number) {
    this.#child = fork(CHILD, [store, String(first), String(most)])
    this.#child.on('message', (what: FromChild) => {
      this.#heard.push(what)
      if (what.kind === 'acked') this.acked = what.upTo
    })
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  tell(what: ToChild): void {
    this.#child.send(what)
  }

  /** Resolves once the child has said this. */
  async said(kind: FromChild['kind'], test: () => boolean = () => true): Promise<void> {
    while (!this.#heard.some((one) => one.kind === kind) || !test()) {
      if (this.#child.exitCode !== null) throw new Error(`The child ended with ${this.#child.exitCode}.`)
      await once(this.#child, 'message')
    }
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

/** `store` is the address that each life opens. */
export async function checkHistoryUnderKills(store: string): Promise<void> {
  const to = await subscriber()
  const acked: number[] = []
  const range = (from: number, upTo: number): void => {
    for (let n = from; n <= upTo; n++) acked.push(n)
  }
  const before = new Life(store, 1, BEFORE)
  await before.said('acked', () => before.acked === BEFORE)
  range(1, BEFORE)
  await before.kill()
  let next = BEFORE + 1
  for (const [at, posts] of POSTS_OF_LIVES.entries()) {
    const life = new Life(store, next, 0)
    await life.said('opened')
    if (at === 0) {
      life.tell({ kind: 'register', url: to.url })
      await life.said('registered')
    }
    await to.reached(to.got.length + posts)
    await life.said('acked')
    await life.kill()
    range(next, life.acked)
    // The events whose reply was lost may be stored or not. The next life uses other numbers.
    next = life.acked + 1_000
  }
  const last = new Life(store, next, 0)
  await last.said('acked', () => last.acked > next + 200)
  last.tell({ kind: 'finish' })
  await last.said('finished')
  range(next, last.acked)
  const ids = to.got.flatMap((post) => post.ids.map(Number))
  const firsts = [...new Set(ids)]
  expect(firsts).toEqual(firsts.toSorted((one, other) => one - other))
  const got = new Set(firsts)
  expect(acked.filter((n) => !got.has(n))).toEqual([])
  const histories = to.got.filter(({ headers }) => headers['webhook-replay'] !== undefined)
  const lastOfHistory = to.got.findLastIndex(({ headers }) => headers['webhook-replay'] !== undefined)
  expect(histories.length).toBeGreaterThan(1)
  expect(to.got.slice(0, lastOfHistory).every(({ headers }) => headers['webhook-replay'] !== undefined)).toBe(true)
}
