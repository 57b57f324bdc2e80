// Turns the events that an alert has collected into notifications. It knows nothing of how they are sent.
import { hash } from 'node:crypto'
import type { FlowEvent } from 'sluice'
import type { Alert } from './alert.ts'
import { windowOf } from './debouncing.ts'
import { titleOf } from './event-types.ts'
import type { Pending } from './events.ts'
import { MAX_RETRIES, type NotificationData } from './notification.ts'

type PendingEvent = Pick<FlowEvent<Pending>, 'data'>

/** Events of a window belong together. One that came while debouncing was off is alone, even if it waited beside a window. */
export function groupEvents<Event extends PendingEvent>(events: readonly Event[]): readonly (readonly Event[])[] {
  const windowed = events.filter(isWindowed)
  const alone = events.filter((event) => !isWindowed(event)).map((event) => [event])
  return windowed.length === 0 ? alone : [windowed, ...alone]
}

/** Whether the window ended early: by the cap of its workspace, or by hand. Only counted, because the clock of a process may be wrong. */
export function isCut(events: readonly Pick<FlowEvent<Pending>, 'data' | 'arrived'>[], now: number): boolean {
  return events.every(({ data, arrived = 0 }) => isWindowed({ data }) && now < arrived + windowOf(data.debouncing))
}

function isWindowed({ data }: PendingEvent): boolean {
  return windowOf(data.debouncing) > 0
}

export interface ConsolidateOptions {
  /** The same in each attempt. */
  readonly seed: string
  readonly at: number
}

/** The `events` are at least one, and all of one alert and type. */
export function consolidate(
  { id: alertId, name: alertName, workspace, alert_type }: Alert,
  events: readonly Pending[],
  { seed, at }: ConsolidateOptions,
): NotificationData {
  const [first] = events
  if (first === undefined) throw new TypeError('A notification needs at least one event.')
  const { event_type: eventType, project_id } = first
  const hasOneProject = project_id !== undefined && events.every((event) => event.project_id === project_id)
  const message = `Alert '${alertName}': ${events.length} ${eventType} events aggregated`
  return {
    id: uuidAt(at, seed),
    event_type: eventType,
    alert_id: alertId,
    ...(hasOneProject && { project_id }),
    alert_name: alertName,
    workspace_id: workspace,
    workspace_name: workspace,
    payload: {
      alertId,
      alertName,
      eventType,
      eventIds: events.map(({ event_id }) => event_id),
      metadata: events.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata])),
      userNames: events.flatMap(({ user_name }) => user_name ?? []),
      eventCount: events.length,
      aggregationType: 'consolidated',
      message,
    },
    created_at: new Date(at).toISOString(),
    max_retries: MAX_RETRIES,
    ...(alert_type !== 'general' && {
      title: alertName,
      text: cardText(events),
      severity: eventType === 'trace:errors' ? 'error' : 'info',
    }),
  }
}

const SHOWN = 10

function cardText(events: readonly Pending[]): string {
  const [first] = events
  const count = events.length.toLocaleString('en')
  const what = `*${count}* new ${first === undefined ? '' : titleOf(first.event_type)} event${events.length === 1 ? '' : 's'}`
  const ids = events.slice(0, SHOWN).map(({ event_id }) => `\`${event_id}\``)
  const more = events.length > SHOWN ? ` and ${(events.length - SHOWN).toLocaleString('en')} more` : ''
  return `${what}\n${ids.join(', ')}${more}`
}

/** A UUID of version 7: the time, and a hash in place of chance. */
function uuidAt(at: number, seed: string): string {
  const hex = at.toString(16).padStart(12, '0') + '7' + hash('sha256', seed).slice(0, 19)
  const variant = '89ab'.charAt(parseInt(hex.charAt(16), 16) % 4)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), variant + hex.slice(17, 20), hex.slice(20, 32)].join(
    '-',
  )
}
