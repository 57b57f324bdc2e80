// `publishEvents` implements `publish`: one event or many, now or later, to all flows or some, alone or in a
// transaction.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { assertDefined } from '../flow/define-event.ts'
import type { EventInput, PublishResult, PublishTarget } from '../model/event.ts'
import { assertKnownOptions } from '../validate/options.ts'
import { isUnwrapped } from './delayed.ts'
import { assertKnownFields } from './event-fields.ts'
import { writeToOutbox, type Transaction } from './outbox.ts'
import type { Publisher, RunEvent, RunPublication } from './publisher.ts'
import { assertSourceNotReserved, parseTargetFlows, type Routes } from './route.ts'

export interface PublishOptions extends PublishTarget {
  /** A client of `pg` in your transaction: the events are published if and only if it commits. Needs a PostgreSQL
      store. */
  readonly tx?: Transaction
}

export interface PublishDependencies {
  readonly publisher: Publisher
  readonly routes: () => Routes
  readonly now: () => Millis
  readonly dedupeFor: Millis
  readonly toEndpoint: (id: string, events: readonly EventInput[]) => Promise<EndpointEvents>
  /** The schema of the outbox; undefined for stores without one. */
  readonly outbox: string | undefined
}

export interface EndpointEvents {
  readonly events: readonly EventInput[]
  /** The deliveries of the app. */
  readonly flows: ReadonlySet<string>
}

export async function publishEvents(
  parts: PublishDependencies,
  given: readonly EventInput[],
  options: PublishOptions,
): Promise<readonly PublishResult[]> {
  assertKnownOptions(options, ['at', 'to', 'tx'], 'publish: ')
  const { at, to, tx } = options
  assertSourceNotReserved(given)
  assertDefinedEvents(given, parts.routes())
  const { publisher, now, dedupeFor, outbox } = parts
  const { events, flows } = await resolveTargets(parts, given, to)
  if (tx !== undefined) {
    if (at !== undefined)
      throw new SluiceError('CONFIG_INVALID', 'publish: at cannot be given with tx; nothing was stored.')
    if (outbox === undefined) {
      throw new SluiceError('CONFIG_INVALID', 'publish: tx needs a PostgreSQL store; nothing was stored.')
    }
    return writeToOutbox(tx, events, { schema: outbox, to: flows, now: now(), dedupeFor })
  }
  if (at === undefined) return publisher.publish(events, flows)
  return publisher.publishAt(events, toMillis(at), flows)
}

/** `assertDefinedEvents` rejects unknown fields, and data that the definition of an event, or one that a flow of this process names, rejects. */
export function assertDefinedEvents(events: readonly EventInput[], { flows }: Pick<Routes, 'flows'>): void {
  const definitions = new Set(flows.flatMap((flow) => flow.definitions))
  // A delayed event was checked when it was published; if a newer schema rejects it, it is stored as unrouted.
  for (const event of events) {
    if (isUnwrapped(event)) continue
    assertKnownFields(event)
    assertDefined(event, definitions)
  }
}

/** `PublishedByRun` is an event that a handler published, as it was given. */
export interface PublishedByRun extends PublishTarget {
  readonly input: EventInput
}

/**
 * `prepareRunEvents` prepares the events of a handler for the commit that settles its run (L2b). It returns a promise only if an event
 * has a target.
 */
export function prepareRunEvents(
  parts: Pick<PublishDependencies, 'publisher' | 'routes' | 'toEndpoint'>,
  published: readonly PublishedByRun[],
  run: string,
  from: number,
): RunPublication | Promise<RunPublication> {
  const { publisher } = parts
  for (const one of published) assertKnownOptions(one, ['input', 'at', 'to'], 'run.publish: ')
  const resolve = async ({ input, at, to }: PublishedByRun): Promise<RunEvent> => {
    const { events, flows } = await resolveTargets(parts, [input], to)
    return { input: events[0] ?? input, at: at === undefined ? undefined : toMillis(at), to: flows }
  }
  if (published.every(isUntargeted)) return publisher.prepareForRun(published.map(toUntargeted), run, from)
  return Promise.all(published.map(resolve)).then((events) => publisher.prepareForRun(events, run, from))
}

function isUntargeted({ to, at }: PublishedByRun): boolean {
  return to === undefined && at === undefined
}

function toUntargeted({ input }: PublishedByRun): RunEvent {
  return { input }
}

function toMillis(at: Date | Millis): Millis {
  return at instanceof Date ? at.getTime() : at
}

async function resolveTargets(
  { routes, toEndpoint }: Pick<PublishDependencies, 'routes' | 'toEndpoint'>,
  events: readonly EventInput[],
  to: PublishOptions['to'],
): Promise<{ readonly events: readonly EventInput[]; readonly flows: ReadonlySet<string> | undefined }> {
  if (to === undefined) return { events, flows: undefined }
  const isEndpoint = typeof to === 'string' && to.startsWith('ep_') && !routes().flows.some(({ name }) => name === to)
  return isEndpoint ? toEndpoint(to, events) : { events, flows: parseTargetFlows(to, routes()) }
}
