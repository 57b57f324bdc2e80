// `RepeatedRefusals` bounds the log entries that strangers can cause with rejected or failing requests. Each kind of
// refusal gets ten entries a minute, then one with the number of omitted entries. That keeps the log readable and the
// disk free.
import type { Clock, Millis } from '../../clock.ts'
import type { AnyListener, EventMap, EventName } from '../emitter.ts'

/** How many entries of one kind are written unchanged in one window. */
const MAX_WRITTEN = 10
const WINDOW: Millis = 60_000
/** An app may publish in the name of any number of sources, so kinds beyond this bound share one. */
const MAX_KINDS = 1_000

export interface OmittedEntries {
  readonly name: EventName
  /** The fields that all entries of the kind have in common. */
  readonly fields: Readonly<Record<string, string>>
  readonly repeated: number
}

interface Kind {
  readonly name: EventName
  readonly fields: Readonly<Record<string, string>>
  count: number
}

export class RepeatedRefusals {
  readonly #clock: Clock
  readonly #kinds = new Map<string, Kind>()
  #since: Millis = -Infinity
  #cancel: (() => void) | undefined
  #write: (leftOut: OmittedEntries) => void = () => {}
  #isEnded = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `onOmitted` sets the function that writes the number of omitted entries. */
  onOmitted(write: (leftOut: OmittedEntries) => void): void {
    this.#write = write
  }

  /** `shouldWrite` counts an entry. It returns false if the entry must be omitted. */
  shouldWrite(...[name, what]: Parameters<AnyListener>): boolean {
    const fields = toRefusalFields(name, what)
    if (fields === undefined) return true
    const now = this.#clock.monotonic()
    if (now - this.#since >= WINDOW) this.#startWindow(now)
    const kind = this.#kind(name, fields)
    kind.count++
    if (kind.count <= MAX_WRITTEN) return true
    // Without omitted entries, nothing needs the end of the window, so no timer is set before.
    if (!this.#isEnded) this.#cancel ??= this.#clock.after(this.#since + WINDOW - now, () => this.flush())
    return false
  }

  /** `flush` writes how many entries were omitted so far. */
  flush(): void {
    this.#startWindow(-Infinity)
  }

  /** `end` flushes and sets no more timers, so that none keeps the process alive. */
  end(): void {
    this.#isEnded = true
    this.flush()
  }

  #startWindow(since: Millis): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#since = since
    const kinds = [...this.#kinds.values()]
    this.#kinds.clear()
    for (const { name, fields, count } of kinds) {
      if (count > MAX_WRITTEN) this.#write({ name, fields, repeated: count - MAX_WRITTEN })
    }
  }

  #kind(name: EventName, fields: Kind['fields']): Kind {
    const own = JSON.stringify([name, fields])
    const isOwn = this.#kinds.has(own) || this.#kinds.size < MAX_KINDS
    const id = isOwn ? own : OTHERS
    const kind = this.#kinds.get(id) ?? { name, fields: isOwn ? fields : {}, count: 0 }
    this.#kinds.set(id, kind)
    return kind
  }
}

const OTHERS = 'others'

function toRefusalFields(name: EventName, payload: EventMap[EventName]): Kind['fields'] | undefined {
  if (name === 'key.refused') return {}
  // A call without a key also fails when the store is unavailable, so strangers can repeat this one.
  if (name === 'api.failed') return { error: (payload as EventMap['api.failed']).error }
  if (name !== 'event.refused') return undefined
  const { source, field } = payload as EventMap['event.refused']
  return { source, field }
}
