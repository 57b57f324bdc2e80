// `Publisher` creates, routes and stores the events that code publishes, and returns the result of each (L2, L10, L18).
import type { Millis } from '../clock.ts'
import { ENGINE_SOURCE, parseAttributes, type Event, type EventInput, type PublishResult } from '../model/event.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { NO_SKIPS, formatSkip, NO_FLOW_MATCHES, type RoutingResult, type Skip } from '../model/routing.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { AppendResult, UnstoredPublish, EventToStore, Placement, Store } from '../store/contract/index.ts'
import { targetFlowsOf, wrapDelayed, wrappedEventId } from './delayed.ts'
import { Intake, type IntakeDependencies } from './intake.ts'
import { createEvent, type RoutableEvent } from '../model/new-event.ts'
import { assertSourceNotReserved, isReservedSource, route, type Routes, type RouteTable } from './route.ts'

export interface PublisherDependencies extends RouteTable {
  readonly store: () => Promise<Store>
  readonly now: () => Millis
  readonly dedupeFor: Millis
  readonly emit: AnyListener
  /** Whether an append takes the store long enough to overlap with this process. */
  readonly overlaps: () => boolean
}

/** `RunEvent` is an event that a handler published, with its target flows and its time. */
export interface RunEvent {
  readonly input: EventInput
  readonly at?: Millis | undefined
  /** Undefined for every matching flow. */
  readonly to?: ReadonlySet<string> | undefined
}

export interface RunPublication {
  readonly events: readonly EventToStore[]
  /** The epoch of the routes that were used. */
  readonly routesEpoch: number
  /** Called once the settlement is stored, with the events that were not stored, by their index in the list. */
  readonly onSettled: (keptOut: readonly Pick<UnstoredPublish, 'publish' | 'result'>[]) => void
}

/** If the routes change this often in a row, something is wrong with them. */
const MAX_ROUTE_TRIES = 5

/** The list of one call is one commit. */
const UNBOUNDED = { maxEvents: Infinity, maxBytes: Infinity, maxSlice: Infinity } as const

interface AddressedEvent extends RoutableEvent {
  /** Only to these flows; undefined for every matching flow. */
  readonly to?: ReadonlySet<string>
}

const STORED: AppendResult = { kind: 'stored' }

export class Publisher {
  readonly #deps: PublisherDependencies
  /** Events published at the same time share a commit. The buffer is unbounded because callers wait for the result. */
  readonly #intake: Intake

  constructor(parts: PublisherDependencies) {
    this.#deps = parts
    this.#intake = this.createIntake(UNBOUNDED)
  }

  /** `createIntake` returns a buffer before the store with bounds of its own. */
  createIntake(bounds: Omit<IntakeDependencies, 'store' | 'overlaps'>): Intake {
    return new Intake({ store: (events) => this.store(events), overlaps: this.#deps.overlaps, ...bounds })
  }

  /** `to` restricts the flows. */
  async publish(inputs: readonly EventInput[], to?: ReadonlySet<string>): Promise<readonly PublishResult[]> {
    const naming = { now: this.#deps.now(), dedupeFor: this.#deps.dedupeFor }
    const named = inputs.map((input) => createEvent(input, naming))
    const events = to === undefined ? named : named.map((event) => ({ ...event, to }))
    return this.#intake.take(events) ?? this.store(events)
  }

  /** `drained` resolves when all published events are stored or rejected. */
  drained(): Promise<void> {
    return this.#intake.drained()
  }

  /** `publishAt` publishes at `at`, not earlier. It returns the ids that the events will have then, not those of
      their wrappers. */
  async publishAt(
    inputs: readonly EventInput[],
    at: Millis,
    to?: ReadonlySet<string>,
  ): Promise<readonly PublishResult[]> {
    const now = this.#deps.now()
    const waiting = inputs.map((input) => wrapDelayed(input, at, now, to))
    const published = await this.publish(waiting)
    const store = await this.#deps.store()
    const inside = async (id: string): Promise<string> => {
      const { item } = await store.get({ kind: 'events', id })
      return wrappedEventId({ id, attributes: parseAttributes(item?.attributes ?? '') })
    }
    return Promise.all(
      published.map(async ({ id, kind, of }, n) => ({
        id: wrappedEventId({ id, attributes: waiting[n]?.attributes ?? {} }),
        kind,
        of: of === undefined ? undefined : await inside(of),
      })),
    )
  }

  async store(events: readonly AddressedEvent[]): Promise<readonly PublishResult[]> {
    const store = await this.#deps.store()
    for (let tries = 1; ; tries++) {
      const routes = this.#deps.routes()
      const routed = events.map((event) => routeAddressed(event, routes))
      const { results } = await store.append({ routes: this.#deps.routesEpoch(), events: routed })
      if (results.some(({ kind }) => kind === 'routes-old') && tries < MAX_ROUTE_TRIES) {
        await this.#deps.refreshRoutes()
        continue
      }
      return routed.map((event, at) => this.#emitResult(event, results[at]))
    }
  }

  /** `prepareForRun` prepares events that a settlement stores. Their dedupe ids derive from the run, so that a
      repeated attempt stores nothing twice (L2b). */
  prepareForRun(published: readonly RunEvent[], run: string, from: number): RunPublication {
    assertSourceNotReserved(published.map(({ input }) => input))
    const naming = { now: this.#deps.now(), dedupeFor: this.#deps.dedupeFor }
    const [epoch, routes] = [this.#deps.routesEpoch(), this.#deps.routes()]
    const routed = published.map(({ input: given, at, to }, n) => {
      const input = { ...given, dedupeId: given.dedupeId ?? `${run}/${from + n}` }
      if (at === undefined) return routeEvent(createEvent(input, naming), routes, to ?? targetFlowsOf(input))
      return routeEvent(createEvent(wrapDelayed(input, at, naming.now, to), naming), routes, undefined)
    })
    const onSettled: RunPublication['onSettled'] = (keptOut) => {
      const results = new Map(keptOut.map(({ publish, result }) => [publish, result]))
      for (const [n, event] of routed.entries()) this.#emitResult(event, results.get(n) ?? STORED)
    }
    return { events: routed, routesEpoch: epoch, onSettled }
  }

  #emitResult(event: EventToStore, result: AppendResult = { kind: 'routes-old' }): PublishResult {
    const { emit } = this.#deps
    const named = { event: event.id, source: event.source, type: event.type }
    switch (result.kind) {
      case 'stored':
        emit('event.received', { ...named, lanes: event.placements.length, flows: uniqueFlows(event.placements) })
        emitUntaken(event, { ...event, lanes: event.placements }, emit)
        for (const { flow, reason, error } of event.unrouted) emit('event.unrouted', { ...named, flow, reason, error })
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

/** Usually there is one flow. */
function uniqueFlows(placements: readonly Placement[]): readonly string[] {
  const flows = placements.map(({ flow }) => flow)
  return flows.length < 2 ? flows : [...new Set(flows)]
}

function routeEvent(event: RoutableEvent, routes: Routes, to: ReadonlySet<string> | undefined): EventToStore {
  const { placements, unrouted, skips } = route(new FlowEvent(event), routes, to)
  return { ...event, placements, unrouted, skips }
}

/** Most events are for every matching flow; those are not copied. */
function routeAddressed(addressed: AddressedEvent, routes: Routes): EventToStore {
  if (addressed.to === undefined) return routeEvent(addressed, routes, undefined)
  const { to, ...event } = addressed
  return routeEvent(event, routes, to)
}

type Named = Pick<Event, 'id' | 'source' | 'type'>

/** `emitUntaken` emits `event.skipped` for each flow that found no key in the event, and `event.unwanted` if no flow
    matches it. */
export function emitUntaken(
  event: Named,
  { lanes, unrouted, skips = NO_SKIPS }: Omit<RoutingResult, 'skips'> & Partial<Pick<RoutingResult, 'skips'>>,
  emit: AnyListener,
): void {
  emitSkips(event, skips, emit)
  const { id, source, type } = event
  // Usually no flow takes the events of the engine.
  const isWanted = lanes.length + unrouted.length + skips.length > 0
  if (!isWanted && source !== ENGINE_SOURCE && !isReservedSource({ source }))
    emit('event.unwanted', { event: id, source, type, text: NO_FLOW_MATCHES })
}

/** `emitSkips` emits `event.skipped` for each skip. */
export function emitSkips({ id, source, type }: Named, skips: readonly Skip[], emit: AnyListener): void {
  for (const skip of skips) {
    emit('event.skipped', { event: id, source, type, flow: skip.flow, text: formatSkip(skip) })
  }
}
