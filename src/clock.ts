// The only file that reads time: everything else is handed a Clock, so that an hour can pass in a test in a millisecond.

export type Millis = number

/** Later than every deadline. Sums are held below it, so that "never" stays an ordinary number in every store. */
export const NEVER: Millis = Number.MAX_SAFE_INTEGER

/** `from + delay`, where an endless delay gives NEVER. Deadlines are whole milliseconds, rounded up: never early. */
export function later(from: Millis, delay: Millis): Millis {
  return delay >= NEVER - from ? NEVER : Math.ceil(from + delay)
}

export interface Clock {
  /** Wall time, in whole milliseconds since 1970. May step. */
  now(): Millis
  /** Milliseconds that only go forward; for measuring, never for comparing with a store. */
  monotonic(): Millis
  /** Calls back once after `delay`; the answer cancels it. Delays above 24 days do not fire early. */
  after(delay: Millis, call: () => void): () => void
  /** Not the time of the world: a store that has a clock of its own goes by this one then. */
  readonly isVirtual?: boolean
}

// setTimeout fires at once when its delay does not fit in 31 bits.
const LONGEST_TIMER = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delay, call) {
    let timer: NodeJS.Timeout
    const arm = (left: Millis): void => {
      const isLong = left > LONGEST_TIMER
      timer = isLong ? setTimeout(() => arm(left - LONGEST_TIMER), LONGEST_TIMER) : setTimeout(call, Math.max(left, 0))
    }
    arm(delay)
    return () => clearTimeout(timer)
  },
}

/** Waits for the work to end, but no longer than this. */
export async function within(clock: Clock, work: Promise<unknown>, most: Millis): Promise<void> {
  const up = Promise.withResolvers<void>()
  const cancel = clock.after(most, up.resolve)
  await Promise.race([work, up.promise]).finally(cancel)
}

/** A clock that can be exchanged before it is used: a test gives an app that was built for real time a time of its own. */
export class ClockInUse implements Clock {
  #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  use(clock: Clock): void {
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
}
