// `MaintenanceScheduler` runs maintenance tasks. Each task returns when to run again, and its failure affects no other task.
import { waitAtMost, type Clock, type Millis } from '../clock.ts'

export interface MaintenanceTask {
  readonly name: string
  /** Whether rules require this task within a second, also under a test's clock. */
  readonly isPrompt?: boolean
  /** Does a bounded piece of work and returns the delay until the next one. */
  readonly run: () => Promise<Millis>
}

const AFTER_FAILURE = 5_000

export class MaintenanceScheduler {
  readonly #clock: Clock
  readonly #tasks: readonly MaintenanceTask[]
  readonly #onResult: (task: string, failure: string | undefined) => void
  readonly #failing = new Set<string>()
  readonly #timers = new Map<string, () => void>()
  readonly #active = new Set<Promise<void>>()
  /** Tasks that were requested while they ran. Each runs again, because the request may be about data newer than what it has read. */
  readonly #requested = new Set<string>()
  #stopped = false

  /** `onResult` gets the error when a task starts to fail, and undefined when it works again. */
  constructor(
    clock: Clock,
    tasks: readonly MaintenanceTask[],
    onResult: (task: string, failure: string | undefined) => void,
  ) {
    this.#clock = clock
    this.#tasks = tasks
    this.#onResult = onResult
  }

  start(): void {
    for (const task of this.#tasks) this.#startTask(task)
  }

  /** `runSoon` runs the task now instead of at its next time, or again at once if it is running. */
  runSoon(name: string): void {
    const task = this.#tasks.find((one) => one.name === name)
    if (task === undefined || this.#stopped) return
    const timer = this.#timers.get(name)
    if (timer === undefined) return void this.#requested.add(name)
    timer()
    this.#timers.delete(name)
    this.#startTask(task)
  }

  /** `stop` waits for the running tasks for at most `timeout`, because a store may never answer. */
  async stop(timeout: Millis): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#timers.values()) cancel()
    if (this.#active.size === 0) return
    await waitAtMost(this.#clock, Promise.all(this.#active), timeout)
  }

  #startTask(task: MaintenanceTask): void {
    const doing = this.#runOnce(task)
    this.#active.add(doing)
    void doing.then(() => this.#active.delete(doing))
  }

  async #runOnce(task: MaintenanceTask): Promise<void> {
    let after = AFTER_FAILURE
    try {
      after = await task.run()
      if (this.#failing.delete(task.name)) this.#onResult(task.name, undefined)
    } catch (error) {
      if (!this.#failing.has(task.name))
        this.#onResult(task.name, error instanceof Error ? error.message : 'The task failed.')
      this.#failing.add(task.name)
    }
    if (this.#requested.delete(task.name) && !this.#failing.has(task.name)) after = 0
    if (this.#stopped) return
    const timer = this.#clock.after(after, () => {
      this.#timers.delete(task.name)
      this.#startTask(task)
    })
    this.#timers.set(task.name, timer)
  }
}

/** `withMinInterval` runs a task this rarely, unless it is prompt. Under a test's clock nothing else happens meanwhile. */
export function withMinInterval(task: MaintenanceTask, minInterval: Millis | undefined): MaintenanceTask {
  if (minInterval === undefined || task.isPrompt === true) return task
  // A delay of 0 means that the task has more to do now.
  const rarely = (after: Millis): Millis => (after === 0 ? 0 : Math.max(minInterval, after))
  return { name: task.name, run: async () => rarely(await task.run()) }
}
