// A path names one value of an event, e.g. `type`, `data.items[0].price` or `data["a.b"]`. Subscribers write paths, so they are
// parsed by this small grammar and reach only the event's own fields.
import type { FlowEvent } from '../model/flow-event.ts'

/** `EventPath` is a parsed path: the field of the event, then names and positions within it. */
export type EventPath = readonly [field: EventField, ...steps: readonly (string | number)[]]

type EventField = (typeof FIELDS)[number]

const FIELDS = ['id', 'source', 'type', 'time', 'tenant', 'subject', 'data', 'attributes'] as const
const NESTED_FIELDS: ReadonlySet<string> = new Set(['data', 'attributes'])
const PATH_LENGTH_MAX = 256
const STEPS_MAX = 32
const STEP = /\.([^.[\]"]+)|\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\]/y

/** `PATH_RULE` completes "… must be": it says what a path is. */
export const PATH_RULE: string = `a path such as type, data.total or data.items[0]["a.b"], of at most ${PATH_LENGTH_MAX} characters`

export function parsePath(text: unknown): EventPath | undefined {
  if (typeof text !== 'string' || text.length > PATH_LENGTH_MAX || !text.isWellFormed()) return undefined
  const field = FIELDS.find((name) => text === name || text.startsWith(`${name}.`) || text.startsWith(`${name}[`))
  if (field === undefined) return undefined
  const steps: (string | number)[] = []
  for (STEP.lastIndex = field.length; STEP.lastIndex < text.length;) {
    const found = STEP.exec(text)
    if (found === null) return undefined
    const [, name, position, quoted] = found
    const step = name ?? (position === undefined ? parseQuoted(quoted ?? '') : Number(position))
    if (step === undefined) return undefined
    steps.push(step)
  }
  const isTooLong = steps.length > (NESTED_FIELDS.has(field) ? STEPS_MAX : 0)
  return isTooLong ? undefined : [field, ...steps]
}

function parseQuoted(text: string): string | undefined {
  try {
    return JSON.parse(text) as string
  } catch {
    return undefined
  }
}

/** `readPath` returns undefined if the event has no value at the path. `time` is in ISO 8601 form. */
export function readPath(event: FlowEvent, [field, ...steps]: EventPath): unknown {
  let value: unknown = field === 'time' ? new Date(event.time).toISOString() : event[field]
  for (const step of steps) value = readStep(value, step)
  return value
}

function readStep(value: unknown, step: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof step === 'number') return Array.isArray(value) ? (value as readonly unknown[])[step] : undefined
  return !Array.isArray(value) && Object.hasOwn(value, step) ? value[step as keyof typeof value] : undefined
}
