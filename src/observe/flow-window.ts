// The window of a flow, for people. It may be a function of the event, so it is known only by trying.
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { WindowParameters } from '../model/place.ts'
import { formatDuration } from './explain/format.ts'

/** `NO_EVENT` is an event without content. */
export const NO_EVENT: ConstructorParameters<typeof FlowEvent>[0] = {
  id: '',
  source: '',
  type: '',
  time: 0,
  tenant: '',
  subject: '',
  attributes: '',
  body: new Uint8Array(),
}

/** `sampleWindow` returns the window of an empty event at the level; undefined if the window is a function that rejects it. */
export function sampleWindow(flow: Pick<Flow, 'computeWindow'>, level = 0): WindowParameters | undefined {
  try {
    const window = flow.computeWindow(new FlowEvent(NO_EVENT), level)
    return typeof window?.quiet === 'number' && typeof window.max === 'number' ? window : undefined
  } catch {
    return undefined
  }
}

/** `describeWindow` returns e.g. "quiet 10 s, max 60 s" or "every 60 s"; undefined without a window. */
export function describeWindow({ quiet, max }: { readonly quiet: Millis; readonly max: Millis }): string | undefined {
  if (quiet === 0 || max === 0) return undefined
  const most = max === Infinity ? 'no max' : `max ${formatDuration(max)}`
  return quiet === Infinity ? `every ${formatDuration(max)}` : `quiet ${formatDuration(quiet)}, ${most}`
}
