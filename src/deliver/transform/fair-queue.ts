// `FairQueue` shares the threads fairly by time: of all owners that wait, the one that has used the least goes first. An owner
// whose scripts run for a second each therefore waits for those whose scripts take a millisecond, and not the other way round.
import type { Millis } from '../../clock.ts'

interface Owner<T> {
  /** How much time the owner has used, or what it would have used had it waited all along. */
  used: Millis
  isRunning: boolean
  readonly waiting: T[]
}

export interface QueuedJob<T> {
  readonly owner: string
  readonly job: T
}

export class FairQueue<T> {
  readonly #owners = new Map<string, Owner<T>>()
  /** The `used` of the owner that was served last. */
  #level: Millis = 0
  #length = 0

  /** The number of waiting jobs. */
  get length(): number {
    return this.#length
  }

  add(owner: string, job: T): void {
    const known = this.#owners.get(owner) ?? { used: 0, isRunning: false, waiting: [] }
    // An owner that was idle has saved up nothing.
    if (known.waiting.length === 0 && !known.isRunning) known.used = Math.max(known.used, this.#level)
    known.waiting.push(job)
    this.#owners.set(owner, known)
    this.#length++
  }

  /** `take` returns the next job. One job of an owner runs at a time. */
  take(): QueuedJob<T> | undefined {
    let next: { readonly name: string; readonly owner: Owner<T> } | undefined
    for (const [name, owner] of this.#owners) {
      if (owner.isRunning || owner.waiting.length === 0) continue
      if (next === undefined || owner.used < next.owner.used) next = { name, owner }
    }
    const job = next?.owner.waiting.shift()
    if (next === undefined || job === undefined) return undefined
    next.owner.isRunning = true
    this.#level = Math.max(this.#level, next.owner.used)
    this.#length--
    return { owner: next.name, job }
  }

  /** `end` charges the time of a job to its owner. */
  end(name: string, ms: Millis): void {
    const owner = this.#owners.get(name)
    if (owner === undefined) return
    owner.isRunning = false
    owner.used += ms
    const others = [...this.#owners.values()]
    // When no job runs or waits, the used times no longer matter: no owner has to wait for another.
    if (others.every(({ isRunning, waiting }) => !isRunning && waiting.length === 0)) this.#owners.clear()
  }

  /** `clear` removes and returns all waiting jobs. */
  clear(): readonly T[] {
    const jobs = [...this.#owners.values()].flatMap(({ waiting }) => waiting.splice(0))
    this.#length = 0
    return jobs
  }
}
