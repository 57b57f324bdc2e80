// `ScriptThreads` runs scripts on a few threads, so that none holds up the event loop. It ends the thread of a script that does
// not return, and any thread in which a script failed by its limits: the next script gets a fresh one.
import { Worker } from 'node:worker_threads'
import { systemClock, type Clock, type Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import { FairQueue } from './fair-queue.ts'
import { SCRIPT_LIMITS, type ScriptCall, type ScriptFailure, type ScriptLimits, type ScriptResult } from './script.ts'

export interface ScriptThreadsOptions {
  readonly threads?: number
  readonly limits?: ScriptLimits
  /** Real time, even under a virtual clock, because a script uses the processor and not the app's time. */
  readonly clock?: Pick<Clock, 'after' | 'monotonic'>
}

type ScriptJob = Omit<ScriptCall, 'limits'>

interface QueuedScript {
  readonly job: ScriptJob
  readonly resolve: (result: ScriptResult) => void
  readonly reject: (error: unknown) => void
}

const THREADS = 2
const MAX_WAITING = 1_000
/** A script in a slow built-in function sees no interrupt, and a busy machine delays it. It has this multiple of its time, in all. */
const GRACE = 5
const START_TIMEOUT: Millis = 30_000
/** JSON on its way in and out, beside the memory of the scripts, which is not on the heap. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 }
/** What `#next` returns instead of a message. */
const SILENT: unique symbol = Symbol('silent')
const ENDED: unique symbol = Symbol('ended')
const STOPPED = 'Transformations have stopped with the app.'

export class ScriptThreads {
  readonly #most: number
  readonly #limits: ScriptLimits
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>
  readonly #queue = new FairQueue<QueuedScript>()
  readonly #idle: Worker[] = []
  readonly #all = new Set<Worker>()
  #busy = 0
  #closed = false

  constructor({ threads = THREADS, limits = SCRIPT_LIMITS, clock = systemClock }: ScriptThreadsOptions = {}) {
    this.#most = threads
    this.#limits = limits
    this.#clock = clock
  }

  /** `run` rejects only if Sluice is at fault: it is overloaded, stops, or cannot start a thread. */
  run(owner: string, job: ScriptJob): Promise<ScriptResult> {
    if (this.#closed) return Promise.reject(new SluiceError('APP_STOPPED', STOPPED))
    if (this.#queue.length >= MAX_WAITING) {
      const text = `${MAX_WAITING} transformations already wait for a thread.`
      return Promise.reject(new SluiceError('TRANSFORM_BUSY', text))
    }
    const { promise, resolve, reject } = Promise.withResolvers<ScriptResult>()
    this.#queue.add(owner, { job, resolve, reject })
    this.#pump()
    return promise
  }

  /** `close` terminates all threads, even in the middle of a script, and rejects the waiting jobs. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#queue.clear()) reject(new SluiceError('APP_STOPPED', STOPPED))
    await Promise.all([...this.#all].map((thread) => thread.terminate()))
  }

  #pump(): void {
    while (this.#busy < this.#most && !this.#closed) {
      const next = this.#queue.take()
      if (next === undefined) return
      this.#busy++
      const began = this.#clock.monotonic()
      void this.#runNext(next.job).finally(() => {
        this.#busy--
        this.#queue.end(next.owner, this.#clock.monotonic() - began)
        this.#pump()
      })
    }
  }

  async #runNext({ job, resolve, reject }: QueuedScript): Promise<void> {
    try {
      const thread = this.#idle.pop() ?? (await this.#start())
      const result = await this.#callThread(thread, { ...job, limits: this.#limits })
      resolve(result)
      // After any other failure the sandbox is as good as new.
      if (result.failure === undefined || result.failure.why === 'threw') this.#release(thread)
      else await thread.terminate()
    } catch (error) {
      reject(error)
    }
  }

  async #start(): Promise<Worker> {
    const program = new URL(`thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)
    const thread = new Worker(program, { env: {}, execArgv: [], resourceLimits: THREAD_LIMITS })
    this.#all.add(thread)
    thread.once('exit', () => this.#forget(thread))
    // An error is followed by the exit, which fails the call.
    thread.on('error', () => {})
    const started = await this.#next(thread, START_TIMEOUT)
    if (started !== SILENT && started !== ENDED) return thread
    await thread.terminate()
    throw this.#closed
      ? new SluiceError('APP_STOPPED', STOPPED)
      : new SluiceError('TRANSFORM_BUSY', 'A thread for transformations did not start.')
  }

  async #callThread(thread: Worker, call: ScriptCall): Promise<ScriptResult> {
    const began = this.#clock.monotonic()
    thread.ref()
    const replied = this.#next(thread, GRACE * call.limits.time)
    thread.postMessage(call)
    const result = await replied
    if (result !== SILENT && result !== ENDED) return result as ScriptResult
    if (this.#closed) throw new SluiceError('APP_STOPPED', STOPPED)
    return { failure: explainSilence(result, call.limits), console: [], ms: this.#clock.monotonic() - began }
  }

  /** Returns the next message of the thread, ENDED if the thread ends first, or SILENT if it takes too long. */
  #next(thread: Worker, most: Millis): Promise<unknown> {
    return new Promise((resolve) => {
      const done = (message: unknown): void => {
        cancel()
        thread.off('message', done)
        thread.off('exit', onExit)
        resolve(message)
      }
      const onExit = (): void => done(ENDED)
      const cancel = this.#clock.after(most, () => done(SILENT))
      thread.on('message', done)
      thread.on('exit', onExit)
    })
  }

  #release(thread: Worker): void {
    if (!this.#all.has(thread)) return
    // An idle thread does not keep the process alive.
    thread.unref()
    this.#idle.push(thread)
  }

  #forget(thread: Worker): void {
    this.#all.delete(thread)
    const at = this.#idle.indexOf(thread)
    if (at !== -1) this.#idle.splice(at, 1)
  }
}

/** A thread ends by itself only when it exceeds its memory. A timer may fire a little early, so the time that passed decides nothing. */
function explainSilence(silence: typeof SILENT | typeof ENDED, { time, memory }: ScriptLimits): ScriptFailure {
  return silence === SILENT
    ? { why: 'time', message: `It ran for more than ${time / 1_000} s.` }
    : { why: 'memory', message: `It used more than ${memory / 1_024 / 1_024} MB of memory.` }
}
