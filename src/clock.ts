// `Clock` is the only source of time, and this is the only file that reads it. In a test, an hour can therefore pass in a
// millisecond.

export type Millis = number

/** `NEVER` is later than every deadline. Sums stay below it, so it is an ordinary number in every store. */
export const NEVER: Millis = Number.MAX_SAFE_INTEGER

/**
 * `addDelay` returns `from + delay`, or NEVER for an endless delay. Deadlines are whole milliseconds, rounded up, so they are never
 * early.
 */
export function addDelay(from: Millis, delay: Millis): Millis {
  return delay >= NEVER - from ? NEVER : Math.ceil(from + delay)
}

export interface Clock {
  /** Wall time in whole milliseconds since 1970. It may step. */
  now(): Millis
  /** Milliseconds that never go back, for measuring durations. Do not compare them with times of a store. */
  monotonic(): Millis
  /** Calls back once after `delay`; the returned function cancels it. Delays above 24 days do not fire early. */
  after(delay: Millis, call: () => void): () => void
  /** Set for a virtual clock: a store that has a clock of its own then uses this one instead. */
  readonly isVirtual?: boolean
  /** Registers work that takes real time, e.g. of another thread: the time of a virtual clock stands still meanwhile. */
  track?<T>(work: Promise<T>): Promise<T>
}

// setTimeout fires at once when its delay does not fit in 31 bits.
const MAX_TIMER_DELAY = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delay, call) {
    let timer: NodeJS.Timeout
    const arm = (left: Millis): void => {
      const isLong = left > MAX_TIMER_DELAY
      timer = isLong
        ? setTimeout(() => arm(left - MAX_TIMER_DELAY), MAX_TIMER_DELAY)
        : setTimeout(call, Math.max(left, 0))
    }
    arm(delay)
    return () => clearTimeout(timer)
  },
}

/** `waitAtMost` waits for `work` to end, but no longer than `most`. */
export async function waitAtMost(clock: Clock, work: Promise<unknown>, most: Millis): Promise<void> {
  const up = Promise.withResolvers<void>()
  const cancel = clock.after(most, up.resolve)
  await Promise.race([work, up.promise]).finally(cancel)
}

/** `SwappableClock` can be replaced before it is used: a test gives an app that was built for real time a virtual clock. */
export class SwappableClock implements Clock {
  #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  swap(clock: Clock): void {
    this.#clock = clock
  }

  get isVirtual(): boolean {
    return this.#clock.isVirtual === true
  }

  now(): Millis {
    return this.#clock.now()
  }

  monotonic(): Millis {
    return this.#clock.monotonic()
  }

  after(delay: Millis, call: () => void): () => void {
    return this.#clock.after(delay, call)
  }

  track<T>(work: Promise<T>): Promise<T> {
    return this.#clock.track?.(work) ?? work
  }
}

/**
 * `EventLoopTurn` gathers work that becomes ready in one turn of the event loop, so that it is done together. Code that runs many
 * times in a row stays in the processor's caches: requests handled one by one take three times as long.
 */
export class EventLoopTurn {
  #waiting: (() => void)[] = []

  /** `waitForEnd` resolves when the current turn is over. */
  waitForEnd(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#end())
    })
  }

  #end(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
