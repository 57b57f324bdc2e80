// The ten types of events that an alert can be about, as Opik names them.

export const EVENT_TYPES = [
  'trace:errors',
  'trace:feedback_score',
  'trace_thread:feedback_score',
  'trace:guardrails_triggered',
  'trace:cost',
  'trace:latency',
  'prompt:created',
  'prompt:committed',
  'prompt:deleted',
  'experiment:finished',
] as const

export type EventType = (typeof EVENT_TYPES)[number]

/** `trace_thread:feedback_score` becomes `Trace Thread Feedback Score`. */
export function titleOf(type: EventType): string {
  return type
    .split(/[:_]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')
}
