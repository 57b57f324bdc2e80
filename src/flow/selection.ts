// The option `on` of a flow: which events it takes, and of which type their data is.
import type { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import { nameOf, type TypedEvent } from '../model/typed-event.ts'
import { invalidOption } from '../validate/options.ts'
import { isTypedEvent } from './define-event.ts'
import { createMatcher } from './globs.ts'
import { createContentFilter, type ContentFilter } from './where.ts'

/** `EventSelector` is the option `on`: typed events, globs over `source/type`, or a predicate. */
export type EventSelector =
  | TypedEvent
  | readonly TypedEvent[]
  | string
  | readonly string[]
  | ((event: FlowEvent) => boolean)

/** `EventOf` is an event that `on` selects. Its data is that of the typed events, or else unknown. */
export type EventOf<On> = On extends readonly (infer One)[] ? EventOfOne<One> : EventOfOne<On>

type EventOfOne<One> = One extends TypedEvent<infer Data, infer Type> ? FlowEvent<Data, Type> : FlowEvent

interface SelectingOptions {
  readonly on: EventSelector
  readonly where?: ContentFilter
}

type Selection = Pick<Flow, 'matches' | 'globs' | 'where' | 'definitions'>

export function toSelection(name: string, { on, where }: SelectingOptions): Selection {
  const selection = toNameSelection(name, on)
  if (where === undefined) return selection
  const hasContent = createContentFilter(where, `${name}.where`)
  return { ...selection, where, matches: (event) => selection.matches(event) && hasContent(event) }
}

function toNameSelection(name: string, on: EventSelector): Selection {
  const option = `flow(${JSON.stringify(name)}): on`
  const list: readonly unknown[] = Array.isArray(on) ? on : [on]
  if (list.length > 0 && list.every(isTypedEvent)) {
    const globs = list.map(nameOf)
    const twice = globs.find((glob, at) => globs.indexOf(glob) !== at)
    if (twice !== undefined) throw invalidOption(`${option} must name each event once; got ${twice} twice.`)
    return { matches: createMatcher(globs, `${name}.on`), globs, definitions: list }
  }
  if (list.some(isTypedEvent)) throw invalidOption(`${option} must be a list of only typed events or only globs.`)
  if (typeof on === 'function') {
    const predicate = on
    return { matches: (event) => assertSynchronous(predicate(event), 'on'), globs: undefined, definitions: [] }
  }
  if (typeof on !== 'string' && !Array.isArray(on)) {
    throw invalidOption(`${option} must be a typed event, a glob, a list of either, or a function.`)
  }
  const globs = list as readonly string[]
  return { matches: createMatcher(globs, `${name}.on`), globs, definitions: [] }
}

/** `assertSynchronous` rejects a promise: routing is synchronous (L2a). A promise is an error. Its own rejection is ignored. */
export function assertSynchronous<T>(answer: T, option: 'on' | 'key' | 'window' | 'whileRunning'): T {
  if (typeof answer !== 'object' || answer === null) return answer
  const late = (Array.isArray(answer) ? (answer as readonly unknown[]) : [answer]).filter(isPromise)
  if (late.length === 0) return answer
  for (const one of late) Promise.resolve(one).catch(() => {})
  throw new TypeError(`${option} must be synchronous and do no I/O; it returned a promise.`)
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
