// The world around the alerts: the stand-ins for whoever is notified.
import type { Example } from '../kit/example.ts'
import { Receivers } from './stand-in/receivers.ts'

export interface World {
  readonly receivers: Receivers
  /** A key of the app's API, once one was made. */
  apiKey: string | undefined
  /** Counted, so that each scenario has workspaces and receivers of its own. */
  made: number
}

/** The times of the design, for virtual time. */
export const TRUE_TIMES = {
  SLUICE_ENCRYPTION_KEY: 'YSBzdGFuZC1pbiBrZXkgd2l0aCAzMiBieXRlcyBvayE=',
  // Small, so that a scenario reaches them.
  MAX_EVENTS_PER_KEY: '2000',
  MAX_KEYS_PER_WORKSPACE: '20',
} as const

/** Short ones, to look on. */
export const SHORT_TIMES = { ...TRUE_TIMES, LATE_AFTER: '5s' } as const

export const makeWorld: Example<World>['world'] = ({ clock, standIn }) => {
  const receivers = new Receivers(clock)
  standIn('receivers', receivers.respond)
  return { receivers, apiKey: undefined, made: 0 }
}

/** Ends what a scenario did to the receivers. */
export function repair({ receivers }: World): void {
  receivers.failing.clear()
}
