// The way in for code: events are named, routed and stored, and the answer says of each what became of it (L2, L10, L18).
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event-input.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { AnyListener } from '../observe/events.ts'
import type { Appended, KeptOut, NewEvent, Place, Store } from '../store/contract/index.ts'
import { addressedTo, wrapped } from './delayed.ts'
import { mustBeTheirs } from './entrance.ts'
import { Intake } from './intake.ts'
import { newEvent, type UnroutedEvent } from './new-event.ts'
import { route, type Routes } from './route.ts'

export interface PublisherParts {
  readonly store: () => Promise<Store>
  readonly routes: () => Routes
  /** The epoch of the routes above (L18). */
  readonly epoch: () => number
  /** Reads the routes anew: somebody has changed them. */
  readonly refresh: () => Promise<void>
  readonly now: () => Millis
  readonly dedupeFor: Millis
  readonly emit: AnyListener
}

/** What became of one event. `of`: the event that has the same identity. Ids are those of the events, also while they wait for their time. */
export interface Published {
  readonly id: string
  /** `in-transaction`: whether it is stored is for the transaction to say. */
  readonly kind: 'stored' | 'repeated' | 'duplicate' | 'conflict' | 'refused' | 'in-transaction'
  readonly of: string | undefined
}

export interface PublishedByRun {
  readonly events: readonly NewEvent[]
  /** The epoch by which they were routed. */
  readonly routes: number
  /** Once the settlement is stored; what it kept out, by its place in the list. */
  readonly tell: (keptOut: readonly Pick<KeptOut, 'publish' | 'result'>[]) => void
}

/** After so many changes of the routes in a row something is wrong with them. */
const ROUTES_TRIES = 5

/** A list of one call is one commit. */
const UNBOUNDED = { maxEvents: Infinity, maxBytes: Infinity, slice: Infinity } as const

interface AddressedEvent extends UnroutedEvent {
  /** Only to these flows; undefined: to whoever wants it. */
  readonly to?: ReadonlySet<string>
}

const STORED: Appended = { kind: 'stored' }

export class Publisher {
  readonly #parts: PublisherParts
  /** What code publishes at the same time shares a commit. It waits for its answer, which is bound enough. */
  readonly #gathered = new Intake({ store: (events) => this.store(events), ...UNBOUNDED })

  constructor(parts: PublisherParts) {
    this.#parts = parts
  }

  /** `to`: only these flows. */
  async publish(inputs: readonly EventInput[], to?: ReadonlySet<string>): Promise<readonly Published[]> {
    const naming = { now: this.#parts.now(), dedupeFor: this.#parts.dedupeFor }
    const named = inputs.map((input) => newEvent(input, naming))
    const events = to === undefined ? named : named.map((event) => ({ ...event, to }))
    return this.#gathered.take(events) ?? this.store(events)
  }

  /** When all that was published is stored, or its caller was told that it is not. */
  drained(): Promise<void> {
    return this.#gathered.drained()
  }

  /** Not before `at`. Answers by the names that the events will have then, not by those under which they wait. */
  async publishLater(
    inputs: readonly EventInput[],
    at: Millis,
    to?: ReadonlySet<string>,
  ): Promise<readonly Published[]> {
    const now = this.#parts.now()
    const waiting = inputs.map((input) => wrapped(input, at, now, to))
    const published = await this.publish(waiting)
    const store = await this.#parts.store()
    const inside = async (id: string): Promise<string> => {
      const { item } = await store.get({ kind: 'events', id })
      return item === undefined || item.subject === '' ? id : item.subject
    }
    return Promise.all(
      published.map(async ({ id, kind, of }, n) => ({
        id: waiting[n]?.subject ?? id,
        kind,
        of: of === undefined ? undefined : await inside(of),
      })),
    )
  }

  async store(events: readonly AddressedEvent[]): Promise<readonly Published[]> {
    const store = await this.#parts.store()
    for (let tries = 1; ; tries++) {
      const routes = this.#parts.routes()
      const routed = events.map((event) => routedAsAddressed(event, routes))
      const call = { routes: this.#parts.epoch(), events: routed.map(({ event }) => event) }
      const { results } = await store.append(call)
      if (results.some(({ kind }) => kind === 'routes-old') && tries < ROUTES_TRIES) {
        await this.#parts.refresh()
        continue
      }
      return routed.map(({ event, skipped }, at) => this.#told(event, skipped, results[at]))
    }
  }

  /** For a settlement, which stores them: named after their run, so that a repeated attempt stores nothing twice (L2b). */
  ofRun(inputs: readonly EventInput[], run: string, from: number): PublishedByRun {
    mustBeTheirs(inputs)
    const naming = { now: this.#parts.now(), dedupeFor: this.#parts.dedupeFor }
    const [epoch, routes] = [this.#parts.epoch(), this.#parts.routes()]
    const routed = inputs.map((input, n) => {
      const named = newEvent({ ...input, dedupeId: input.dedupeId ?? `${run}/${from + n}` }, naming)
      return routedEvent(named, routes, addressedTo(input))
    })
    const tell: PublishedByRun['tell'] = (keptOut) => {
      const results = new Map(keptOut.map(({ publish, result }) => [publish, result]))
      for (const [n, { event, skipped }] of routed.entries()) this.#told(event, skipped, results.get(n) ?? STORED)
    }
    return { events: routed.map(({ event }) => event), routes: epoch, tell }
  }

  #told(event: NewEvent, skipped: readonly string[], result: Appended = { kind: 'routes-old' }): Published {
    const { emit } = this.#parts
    const named = { event: event.id, source: event.source, type: event.type }
    switch (result.kind) {
      case 'stored':
        emit('event.received', { ...named, lanes: event.places.length, flows: flowsOf(event.places) })
        for (const flow of skipped) emit('event.skipped', { ...named, flow })
        for (const { flow, reason, error } of event.marks) emit('event.unrouted', { ...named, flow, reason, error })
        return { id: event.id, kind: 'stored', of: undefined }
      case 'repeated':
        return { id: event.id, kind: 'repeated', of: event.id }
      case 'duplicate':
      case 'conflict':
        emit(`event.${result.kind}`, { ...named, of: result.of })
        return { id: event.id, kind: result.kind, of: result.of }
      case 'refused':
        emit('event.refused', { ...named, field: result.field, fix: result.fix })
        return { id: event.id, kind: 'refused', of: undefined }
      case 'routes-old':
        emit('event.refused', { ...named, field: 'routes', fix: 'the routes change faster than events can be routed' })
        return { id: event.id, kind: 'refused', of: undefined }
    }
  }
}

/** Mostly it is one. */
function flowsOf(places: readonly Place[]): readonly string[] {
  const flows = places.map(({ flow }) => flow)
  return flows.length < 2 ? flows : [...new Set(flows)]
}

interface RoutedEvent {
  readonly event: NewEvent
  readonly skipped: readonly string[]
}

function routedEvent(event: UnroutedEvent, routes: Routes, to: ReadonlySet<string> | undefined): RoutedEvent {
  const { places, marks, skipped } = route(new FlowEvent(event), routes, to)
  return { event: { ...event, places, marks }, skipped }
}

/** Most are for whoever wants them, and are not copied. */
function routedAsAddressed(addressed: AddressedEvent, routes: Routes): RoutedEvent {
  if (addressed.to === undefined) return routedEvent(addressed, routes, undefined)
  const { to, ...event } = addressed
  return routedEvent(event, routes, to)
}
