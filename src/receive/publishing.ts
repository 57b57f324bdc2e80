// What `publish` takes: one event or many, now or later, to all or to some, by itself or as part of a transaction.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event-input.ts'
import { onlyKnown } from '../model/options.ts'
import { addressees, mustBeTheirs } from './entrance.ts'
import { putInOutbox, type Transaction } from './outbox.ts'
import type { Published, Publisher } from './publisher.ts'
import type { Routes } from './route.ts'

export interface PublishOptions {
  /** Not before then. */
  readonly at?: Date | Millis
  /** Only to these flows, or to this one endpoint, whether or not they ask for such events. */
  readonly to?: string | readonly string[]
  /** A client of `pg` with a transaction of yours: published if and only if that commits. Needs a PostgreSQL store. */
  readonly tx?: Transaction
}

const PUBLISH_OPTIONS: ReadonlySet<string> = new Set<keyof PublishOptions>(['at', 'to', 'tx'])

export interface PublishingParts {
  readonly publisher: Publisher
  readonly routes: () => Routes
  readonly now: () => Millis
  readonly dedupeFor: Millis
  readonly toEndpoint: (id: string, events: readonly EventInput[]) => Promise<ToEndpoint>
  /** The schema of the outbox; undefined where there is none. */
  readonly outbox: string | undefined
}

export interface ToEndpoint {
  readonly events: readonly EventInput[]
  /** The deliveries of the app. */
  readonly flows: ReadonlySet<string>
}

export async function publishing(
  parts: PublishingParts,
  given: readonly EventInput[],
  options: PublishOptions,
): Promise<readonly Published[]> {
  onlyKnown(options, PUBLISH_OPTIONS, 'publish: ')
  const { at, to, tx } = options
  mustBeTheirs(given)
  const { publisher, now, dedupeFor, outbox } = parts
  const { events, flows } = await reached(parts, given, to)
  if (tx !== undefined) {
    if (at !== undefined)
      throw new SluiceError('CONFIG_INVALID', 'publish: at cannot be given with tx; nothing was stored.')
    if (outbox === undefined) {
      throw new SluiceError('CONFIG_INVALID', 'publish: tx needs a PostgreSQL store; nothing was stored.')
    }
    return putInOutbox(tx, events, { schema: outbox, to: flows, now: now(), dedupeFor })
  }
  if (at === undefined) return publisher.publish(events, flows)
  return publisher.publishLater(events, at instanceof Date ? at.getTime() : at, flows)
}

async function reached(
  { routes, toEndpoint }: PublishingParts,
  events: readonly EventInput[],
  to: PublishOptions['to'],
): Promise<{ readonly events: readonly EventInput[]; readonly flows: ReadonlySet<string> | undefined }> {
  if (to === undefined) return { events, flows: undefined }
  const isEndpoint = typeof to === 'string' && to.startsWith('ep_') && !routes().flows.some(({ name }) => name === to)
  return isEndpoint ? toEndpoint(to, events) : { events, flows: addressees(to, routes()) }
}
