// What a newcomer needs first: where the dashboard is, how to send a webhook by hand, and what to try next.
import { POISON } from './flow.ts'
import type { Paint } from './style.ts'
import { BY_HAND_TOKEN } from './webhooks.ts'

export interface Addresses {
  readonly dashboard: string
  /** The webhook that a person can send by hand. */
  readonly webhook: string
}

/** How many lines a small terminal shows: without the last block, which the dashboard explains itself. */
export const MOST_NEEDED = 4

/** No line is longer than 80 characters with the default port, because the terminal cuts long lines off. */
export function welcome({ dashboard, webhook }: Addresses, paint: Paint): readonly string[] {
  return [
    ` ${paint('bold', 'Dashboard')}  ${paint('cyan', dashboard)}`,
    '',
    ' Send a webhook. It runs once you have sent none for two seconds:',
    ` curl -H 'authorization: Bearer ${BY_HAND_TOKEN}' -d user=you ${webhook}`,
    '',
    ' Try next in the dashboard',
    '   Lanes         watch windows open and close, and runs wait for the limit',
    `   Dead letters  see why ${POISON} failed, and retry it`,
    '   Endpoints     find the subscriber that is broken',
  ]
}
