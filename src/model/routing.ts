// `Skip` and `formatRoutingNote` describe why a flow did not take an event, in the words that the API, the command line and the log
// share.

/** `Skip` names a flow that permanently gives an event no placement, and why: the event has no key, or an operator dropped it. */
export interface Skip {
  /** '' for an event that was dropped before it was routed to any flow. */
  readonly flow: string
  readonly reason: 'no-key' | 'dropped'
}

/** `RoutingFault` is the reason of an unrouted event for which a function or a schema of the user failed. */
export type RoutingFault = 'key-failed' | 'schema-failed'

/** `ROUTING_FAULTS` are the reasons that last until a new version of the code or a retry by hand. Their errors may quote the payload. */
export const ROUTING_FAULTS: readonly RoutingFault[] = ['key-failed', 'schema-failed']

export function isRoutingFault(reason: string): boolean {
  return ROUTING_FAULTS.some((fault) => fault === reason)
}

/** `RoutingResult` is the result of routing: the lanes of an event, the flows that still lack a placement, and its skips. */
export interface RoutingResult {
  readonly lanes: readonly unknown[]
  readonly unrouted: readonly { readonly flow: string; readonly reason: string }[]
  readonly skips: readonly Skip[]
}

export const NO_SKIPS: readonly Skip[] = []

export const NO_FLOW_MATCHES = 'no flow wants this event'

/** `formatSkip` returns one skip as a sentence without a subject, e.g. "skipped by sync-customer: no key". */
export function formatSkip({ flow, reason }: Skip): string {
  if (reason === 'no-key') return `skipped by ${flow}: no key`
  return flow === '' ? 'dropped by an operator before it was routed' : `dropped by an operator: ${flow} never got it`
}

/** `formatRoutingNote` returns why flows did not take an event; '' if every flow that matches has a placement for it. */
export function formatRoutingNote({ lanes, unrouted, skips }: RoutingResult): string {
  if (lanes.length + unrouted.length + skips.length === 0) return NO_FLOW_MATCHES
  return [...skips.map(formatSkip), ...unrouted.map(formatUnrouted)].join('; ')
}

/** An unrouted event without a flow, or from an outbox, is routed within a second. */
function formatUnrouted({ flow, reason }: RoutingResult['unrouted'][number]): string {
  return flow === '' || reason === 'outbox' ? 'not routed yet' : `not routed to ${flow} yet: ${reason}`
}

interface HasFlow {
  readonly flow: string
}

/** `mergeSkips` returns `known` and `more`, one of each flow, without those of flows that took the event after all. */
export function mergeSkips(known: readonly Skip[], more: readonly Skip[], taken: readonly HasFlow[]): readonly Skip[] {
  const isOver = ({ flow }: HasFlow): boolean => [...taken, ...more].some((one) => one.flow === flow)
  return more.length > 0 || known.some(isOver) ? [...known.filter((one) => !isOver(one)), ...more] : known
}

/** `serializeSkips` returns skips as a store keeps them: JSON of flow and reason in turn, '' for none. */
export function serializeSkips(skips: readonly Skip[]): string {
  return skips.length === 0 ? '' : JSON.stringify(skips.flatMap(({ flow, reason }) => [flow, reason]))
}

/** `parseSkips` parses what `serializeSkips` wrote. */
export function parseSkips(text: string): readonly Skip[] {
  if (text === '') return NO_SKIPS
  const words = JSON.parse(text) as readonly string[]
  return words.flatMap((flow, at) => (at % 2 === 0 ? { flow, reason: words[at + 1] as Skip['reason'] } : []))
}
