// `Emitter` passes what happens to listeners as it happens. A failing listener does not affect the others.
import type { Millis } from '../clock.ts'
import { assertEventName } from './event-names.ts'

interface EventPayload {
  readonly event: string
  readonly source: string
  readonly type: string
}

interface FlowPayload {
  readonly flow: string
}

interface LanePayload extends FlowPayload {
  readonly key: string
}

export interface RunPayload extends LanePayload {
  readonly run: string
  readonly tenant: string
  /** Counted from 1. */
  readonly attempt: number
  readonly events: number
}

interface EndedRunPayload extends RunPayload {
  readonly ms: Millis
}

interface FailedRunPayload extends EndedRunPayload {
  readonly error: string
}

interface ReplayPayload {
  readonly replay: string
}

interface EndpointPayload {
  readonly endpoint: string
  readonly reason: string
}

/** `EventMap` has every event that `app.on` can listen to, with its fields. */
export interface EventMap {
  /** `flows` are the flows that got a placement of the event. */
  'event.received': EventPayload & { readonly lanes: number; readonly flows?: readonly string[] }
  'event.duplicate': EventPayload & { readonly of: string }
  'event.conflict': EventPayload & { readonly of: string }
  'event.refused': EventPayload & { readonly field: string; readonly fix: string }
  /** A flow wants the event, but its key function found no key (L11). */
  'event.skipped': EventPayload & FlowPayload & { readonly text: string }
  /** No flow wants the event. It is stored all the same. */
  'event.unwanted': EventPayload & { readonly text: string }
  'event.unrouted': EventPayload & FlowPayload & { readonly reason: string; readonly error: string }
  /** The first event entered an empty lane. Emitted in the process that stored the event. */
  'lane.opened': LanePayload
  /** A process claimed the lane after its deadline. */
  'lane.due': LanePayload & { readonly due: Millis; readonly late: Millis }
  'lane.held': LanePayload & { readonly reason: string; readonly by: string }
  'run.claimed': RunPayload & { readonly due: Millis; readonly late: Millis }
  'run.started': RunPayload
  'run.done': EndedRunPayload & { readonly counts: Readonly<Record<string, number>> }
  /** The handler asked to run later. */
  'run.snoozed': EndedRunPayload & { readonly after: Millis }
  /** The engine moved the run to later, e.g. because a rate limit has no slot soon or the process stops. */
  'run.deferred': EndedRunPayload & { readonly after: Millis; readonly why: string }
  'run.retry': FailedRunPayload & { readonly after: Millis }
  'run.partial': FailedRunPayload & { readonly failed: number }
  'run.cancelled': EndedRunPayload
  'run.lost': EndedRunPayload & { readonly why: string }
  'run.dead': FailedRunPayload
  'run.dropped': EndedRunPayload & { readonly reason: string; readonly counts: Readonly<Record<string, number>> }
  'limit.paused': { readonly limit: string; readonly ms: Millis }
  'limit.slowed': { readonly limit: string }
  'limit.resumed': { readonly limit: string }
  'alert.raised': { readonly alert: string; readonly text: string }
  'alert.cleared': { readonly alert: string; readonly text: string }
  'flow.paused': FlowPayload & { readonly reason: string; readonly by: string }
  'flow.resumed': FlowPayload & { readonly by: string }
  'flow.unserved': FlowPayload & { readonly lanes: number }
  'replay.started': ReplayPayload & { readonly found: number }
  'replay.done': ReplayPayload & { readonly placed: number }
  'replay.cancelled': ReplayPayload & { readonly placed: number }
  /** A handshake delivered the secret of a source. Compare it with the one that the provider shows. */
  'source.keyed': { readonly source: string }
  /** An API call had an unknown key. The key is not included. At most 20 per address and minute. */
  'key.refused': { readonly address: string }
  /** An API call failed in the process, or in its store for a caller who is no operator. The response omits `error`. */
  'api.failed': { readonly method: string; readonly path: string; readonly error: string }
  /** An endpoint failed several times in a row. Sluice sends one batch at a time until it recovers. */
  'endpoint.opened': EndpointPayload
  'endpoint.recovered': EndpointPayload
  /** Nothing is posted to the endpoint until an operator resumes it. */
  'endpoint.disabled': EndpointPayload
  'config.conflict': FlowPayload & { readonly text: string }
  'store.lost': { readonly error: string }
  'store.found': { readonly ms: Millis }
}

export type EventName = keyof EventMap
/** May be async; the emitter does not wait for it. */
type Listener<N extends EventName> = (payload: EventMap[N]) => unknown
export type AnyListener = <N extends EventName>(name: N, payload: EventMap[N]) => void

export class Emitter {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()
  readonly #anyListeners = new Set<AnyListener>()
  readonly #failed = new WeakSet<object>()

  /** `on` returns a function that removes the listener. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    assertEventName(name)
    let listeners = this.#listeners.get(name)
    if (listeners === undefined) this.#listeners.set(name, (listeners = new Set()))
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /** `once` resolves with the next event of this name. */
  once<N extends EventName>(name: N): Promise<EventMap[N]> {
    return new Promise((resolve) => {
      const off = this.on(name, (what) => {
        off()
        resolve(what)
      })
    })
  }

  onAny(listener: AnyListener): () => void {
    this.#anyListeners.add(listener)
    return () => void this.#anyListeners.delete(listener)
  }

  readonly emit: AnyListener = (name, what) => {
    const listeners = this.#listeners.get(name) as ReadonlySet<Listener<typeof name>> | undefined
    for (const listener of listeners ?? NO_LISTENERS) {
      try {
        this.#catchRejection(name, listener, listener(what))
      } catch (error) {
        this.#reportFailure(name, listener, error)
      }
    }
    for (const listener of this.#anyListeners) {
      try {
        this.#catchRejection(name, listener, listener(name, what))
      } catch (error) {
        this.#reportFailure(name, listener, error)
      }
    }
  }

  #catchRejection(name: EventName, listener: object, answer: unknown): void {
    if (typeof answer !== 'object' || answer === null) return
    Promise.resolve(answer).catch((error: unknown) => this.#reportFailure(name, listener, error))
  }

  /** Reports each listener once: one that always fails would also fail on the alert about itself. */
  #reportFailure(name: EventName, listener: object, error: unknown): void {
    if (this.#failed.has(listener)) return
    this.#failed.add(listener)
    const text = `A listener of ${name} failed; further failures are not reported. ${describeError(error)}`
    this.emit('alert.raised', { alert: 'listener', text })
  }
}

const NO_LISTENERS: readonly never[] = []

function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `The listener threw a ${typeof error}.`
}

/** `RUN_ENDINGS` are the ways in which an attempt ends; `run.<ending>` is emitted for each. */
export const RUN_ENDINGS = [
  'done',
  'snoozed',
  'deferred',
  'retry',
  'partial',
  'cancelled',
  'lost',
  'dead',
  'dropped',
] as const
export type RunEnding = (typeof RUN_ENDINGS)[number]
