// What happens, as it happens, for whoever listens. A listener that throws or rejects harms nobody but itself.
import type { Millis } from '../clock.ts'

interface OfEvent {
  readonly event: string
  readonly source: string
  readonly type: string
}

interface OfFlow {
  readonly flow: string
}

interface OfLane extends OfFlow {
  readonly key: string
}

export interface OfRun extends OfLane {
  readonly run: string
  readonly tenant: string
  /** Counted from 1. */
  readonly attempt: number
  readonly events: number
}

interface Ended extends OfRun {
  readonly ms: Millis
}

interface Failed extends Ended {
  readonly error: string
}

interface OfReplay {
  readonly replay: string
}

/** Every name that `app.events` emits, with what comes along. */
interface OfEndpoint {
  readonly endpoint: string
  readonly reason: string
}

export interface EventMap {
  /** `flows`: those that got a place for it. */
  'event.received': OfEvent & { readonly lanes: number; readonly flows?: readonly string[] }
  'event.duplicate': OfEvent & { readonly of: string }
  'event.conflict': OfEvent & { readonly of: string }
  'event.refused': OfEvent & { readonly field: string; readonly fix: string }
  /** A flow wanted it and found no key in it (L11). */
  'event.skipped': OfEvent & OfFlow
  'event.unrouted': OfEvent & OfFlow & { readonly reason: string; readonly error: string }
  /** An event came into a lane that had none. Told in the process that stored it. */
  'lane.opened': OfLane
  /** A lane got its turn. */
  'lane.due': OfLane & { readonly due: Millis; readonly late: Millis }
  'lane.held': OfLane & { readonly reason: string; readonly by: string }
  'run.claimed': OfRun & { readonly due: Millis; readonly late: Millis }
  'run.started': OfRun
  'run.done': Ended & { readonly counts: Readonly<Record<string, number>> }
  'run.again': Ended & { readonly after: Millis; readonly why: string }
  'run.retry': Failed & { readonly after: Millis }
  'run.partial': Failed & { readonly failed: number }
  'run.cancelled': Ended
  'run.lost': Ended & { readonly why: string }
  'run.dead': Failed
  'run.dropped': Ended & { readonly reason: string }
  'limit.paused': { readonly limit: string; readonly ms: Millis }
  'limit.slowed': { readonly limit: string }
  'limit.resumed': { readonly limit: string }
  'alert.raised': { readonly alert: string; readonly text: string }
  'alert.cleared': { readonly alert: string; readonly text: string }
  'flow.paused': OfFlow & { readonly reason: string; readonly by: string }
  'flow.resumed': OfFlow & { readonly by: string }
  'flow.unserved': OfFlow & { readonly lanes: number }
  'replay.started': OfReplay & { readonly found: number }
  'replay.done': OfReplay & { readonly placed: number }
  'replay.cancelled': OfReplay & { readonly placed: number }
  /** A handshake brought the secret of a source: compare it with what the sending side shows. */
  'source.keyed': { readonly source: string }
  /** The API was called with a key that nobody has; which one is not told. At most 20 of an address in a minute. */
  'key.refused': { readonly address: string }
  /** A call of the API was answered with `API_FAILED`, for a reason that only whoever reads this is told. */
  'api.failed': { readonly method: string; readonly path: string; readonly error: string }
  /** An endpoint has failed several times in a row: one batch at a time finds out when it is mended. */
  'endpoint.opened': OfEndpoint
  'endpoint.recovered': OfEndpoint
  /** Nothing is posted to it any more until somebody resumes it. */
  'endpoint.disabled': OfEndpoint
  'config.conflict': OfFlow & { readonly text: string }
  'store.lost': { readonly error: string }
  'store.found': { readonly ms: Millis }
}

export type EventName = keyof EventMap
/** May be async; nobody waits for it. */
type Listener<N extends EventName> = (what: EventMap[N]) => unknown
export type AnyListener = <N extends EventName>(name: N, what: EventMap[N]) => void

export class Emitter {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()
  readonly #all = new Set<AnyListener>()
  readonly #failed = new WeakSet<object>()

  /** Answers how to stop listening. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    let listeners = this.#listeners.get(name)
    if (listeners === undefined) this.#listeners.set(name, (listeners = new Set()))
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /** Resolves with the next one. */
  once<N extends EventName>(name: N): Promise<EventMap[N]> {
    return new Promise((resolve) => {
      const off = this.on(name, (what) => {
        off()
        resolve(what)
      })
    })
  }

  onAny(listener: AnyListener): () => void {
    this.#all.add(listener)
    return () => void this.#all.delete(listener)
  }

  readonly emit: AnyListener = (name, what) => {
    const listeners = this.#listeners.get(name) as ReadonlySet<Listener<typeof name>> | undefined
    for (const listener of listeners ?? NOBODY) {
      try {
        this.#watch(name, listener, listener(what))
      } catch (error) {
        this.#tell(name, listener, error)
      }
    }
    for (const listener of this.#all) {
      try {
        this.#watch(name, listener, listener(name, what))
      } catch (error) {
        this.#tell(name, listener, error)
      }
    }
  }

  #watch(name: EventName, listener: object, answer: unknown): void {
    if (typeof answer !== 'object' || answer === null) return
    Promise.resolve(answer).catch((error: unknown) => this.#tell(name, listener, error))
  }

  /** Once for each listener: one that fails at everything fails at being told of, too. */
  #tell(name: EventName, listener: object, error: unknown): void {
    if (this.#failed.has(listener)) return
    this.#failed.add(listener)
    const text = `A listener of ${name} failed; it is not said again. ${textOf(error)}`
    this.emit('alert.raised', { alert: 'listener', text })
  }
}

const NOBODY: readonly never[] = []

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `It threw ${typeof error}.`
}
