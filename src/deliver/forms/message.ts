// `createContent` builds the body of one POST and the headers that describe it. The same events give the same bytes on every
// attempt.
import type { FlowEvent } from '../../model/flow-event.ts'
import { describeKind } from '../../validate/options.ts'
import type { Endpoint } from '../endpoint.ts'
import { discordBody, pagerDutyBody, slackBody } from './chat.ts'
import { cloudEventsContent, type MessageContent } from './cloud-events.ts'
import { eventsBody, flatContent, standardBody } from './events.ts'
import { cloudEventsMode, kindOf } from './form.ts'

/** `BodyFunction` builds the body of a batch. An object is sent as JSON; a text and bytes are sent as they are. */
export type BodyFunction = (events: readonly FlowEvent[], endpoint: Endpoint) => object | string | Uint8Array

export interface ContentInput {
  readonly endpoint: Endpoint
  /** The newest secret of the endpoint. */
  readonly secret: string
  /** The id of the message. */
  readonly id: string
  /** The `type` of the message: the name of the delivery. */
  readonly type: string
  readonly events: readonly FlowEvent[]
  /** Replaces the form of the endpoint. */
  readonly build: BodyFunction | undefined
}

/** `BodyError` is a failure of a user's body function. */
export class BodyError extends Error {
  override readonly name = 'BodyError'
}

export function createContent({ endpoint, secret, id, type, events, build }: ContentInput): MessageContent {
  if (build !== undefined) return toJsonContent(callBodyFunction(build, events, endpoint))
  const { form } = endpoint
  switch (kindOf(form)) {
    case 'standard':
      return toJsonContent(standardBody(type, events))
    case 'events':
      return toJsonContent(eventsBody(events, typeof form === 'object' && form.kind === 'events' ? form.fields : {}))
    case 'flat':
      return flatContent(events)
    case 'cloudevents':
      return cloudEventsContent(cloudEventsMode(form), events)
    case 'slack':
      return toJsonContent(slackBody(events))
    case 'discord':
      return toJsonContent(discordBody(events))
    case 'pagerduty':
      return toJsonContent(pagerDutyBody(events, { key: secret, id }))
  }
}

function toJsonContent(body: Buffer): MessageContent {
  return { headers: { 'content-type': 'application/json' }, body }
}

function callBodyFunction(build: BodyFunction, events: readonly FlowEvent[], endpoint: Endpoint): Buffer {
  let made: unknown
  try {
    made = build(events, endpoint)
  } catch (error) {
    throw new BodyError(`body threw: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  if (made instanceof Uint8Array) return Buffer.from(made)
  if (typeof made === 'string') return Buffer.from(made)
  if (typeof made !== 'object' || made === null) throw new BodyError(`${BODY_RULE}; it returned ${describeKind(made)}.`)
  if ('then' in made) {
    Promise.resolve(made).catch(() => {})
    throw new BodyError(`${BODY_RULE}; it returned a promise. Look things up in a flow that publishes the event.`)
  }
  return Buffer.from(serialize(made))
}

const BODY_RULE = 'body must return an object, a text or bytes'

function serialize(made: object): string {
  let text: string | undefined
  try {
    text = JSON.stringify(made)
  } catch (error) {
    throw new BodyError(
      `body must return what JSON can represent: ${error instanceof Error ? error.message : 'it threw'}`,
    )
  }
  if (text === undefined) throw new BodyError(`${BODY_RULE}; its toJSON returned nothing.`)
  return text
}
