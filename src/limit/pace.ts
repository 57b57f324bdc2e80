// The option `pace` of a flow: a run takes a slot of a limit before its handler is called, and waits for it in its lane (M6).
// With one limit per sender, a sender that sends too much is slowed down and not rejected.
import { isLimit, type Limit } from './limit.ts'

/** `Pace` is one limit for all runs, or a function that returns the limit of a run, or undefined for none. */
export type Pace<Run> = Limit | ((run: Run) => Limit | undefined)

export function isPace(value: unknown): boolean {
  return typeof value === 'function' || isLimit(value)
}

export function withPace<Run>(handler: (run: Run) => unknown, pace: Pace<Run> | undefined): (run: Run) => unknown {
  if (pace === undefined) return handler
  return (run) => {
    const limit: unknown = typeof pace === 'function' ? pace(run) : pace
    if (limit === undefined) return handler(run)
    if (!isLimit(limit)) throw new TypeError('pace must return a limit, e.g. app.limit(…).per(…), or undefined.')
    return limit.run(() => handler(run))
  }
}
