// How loud each thing that happens is in the log. A new name does not compile until somebody has decided.
import type { EventName } from './events.ts'

type Loudness = 'error' | 'warn' | 'info' | 'debug'

export const LOUDNESS: Readonly<Record<EventName, Loudness>> = {
  'event.received': 'debug',
  'event.duplicate': 'debug',
  'event.conflict': 'warn',
  'event.refused': 'warn',
  'event.skipped': 'debug',
  'event.unrouted': 'warn',
  'lane.opened': 'debug',
  'lane.due': 'debug',
  'lane.held': 'debug',
  'run.claimed': 'debug',
  'run.started': 'debug',
  'run.done': 'info',
  'run.again': 'info',
  'run.retry': 'warn',
  'run.partial': 'info',
  'run.cancelled': 'info',
  'run.lost': 'warn',
  'run.dead': 'error',
  'run.dropped': 'info',
  'limit.paused': 'warn',
  'limit.slowed': 'debug',
  'limit.resumed': 'info',
  'alert.raised': 'warn',
  'alert.cleared': 'debug',
  'flow.paused': 'info',
  'flow.resumed': 'info',
  'flow.unserved': 'warn',
  'config.conflict': 'warn',
  'store.lost': 'error',
  'store.found': 'debug',
}
