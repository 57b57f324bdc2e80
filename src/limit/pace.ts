// The pace of a flow: a run takes a slot of a limit before its handler is called, and waits for it in its lane (M6).
// With a limit for each value of a field, a sender who sends too much is slowed down, not refused.
import { isLimit, type Limit } from './limit.ts'

/** One for all runs, or one for each: undefined, and this run needs none. */
export type Pace<Run> = Limit | ((run: Run) => Limit | undefined)

export function isPace(value: unknown): boolean {
  return typeof value === 'function' || isLimit(value)
}

export function paced<Run>(handler: (run: Run) => unknown, pace: Pace<Run> | undefined): (run: Run) => unknown {
  if (pace === undefined) return handler
  return (run) => {
    const limit: unknown = typeof pace === 'function' ? pace(run) : pace
    if (limit === undefined) return handler(run)
    if (!isLimit(limit))
      throw new TypeError('pace gave something that is no limit; give app.limit(…).per(…), or undefined.')
    return limit.run(() => handler(run))
  }
}
