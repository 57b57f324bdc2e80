// The receivers of notifications, each at a path of its own: any server for general webhooks, Slack and PagerDuty. Slack and PagerDuty
// reject what their documents forbid.
import type { Clock, Millis } from 'sluice'
import type { LoggedRequest } from '../../kit/stand-in.ts'
import type { AlertType } from '../domain/alert.ts'
import type { NotificationBody } from '../domain/notification.ts'

export interface Received {
  /** On the clock that only goes forward. */
  readonly at: Millis
  readonly kind: AlertType
  /** The path, which is different for each alert. */
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

export interface SlackMessage {
  readonly text: string
  readonly blocks: readonly {
    readonly type: string
    readonly text?: { readonly type: string; readonly text: string }
  }[]
}

export class Receivers {
  readonly received: Received[] = []
  /** Paths that answer with this status instead, e.g. 500. */
  readonly failing = new Map<string, number>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  readonly respond = (request: LoggedRequest): Response => {
    const { path, headers, body } = request
    const kind = path.startsWith('/services/') ? 'slack' : path.startsWith('/v2/enqueue') ? 'pagerduty' : 'general'
    const failure = this.failing.get(path)
    const response = failure === undefined ? ANSWERS[kind](request) : new Response('Out of order', { status: failure })
    this.received.push({ at: this.#clock.monotonic(), kind, path, status: response.status, headers, body })
    return response
  }

  /** What a general receiver has accepted. */
  notifications(path?: string): readonly NotificationBody[] {
    return this.accepted('general', path).map(({ body }) => JSON.parse(body) as NotificationBody)
  }

  accepted(kind: AlertType, path?: string): readonly Received[] {
    return this.received.filter((one) => one.kind === kind && one.status < 300 && (path ?? one.path) === one.path)
  }
}

type Answer = (request: LoggedRequest) => Response

const ANSWERS: Readonly<Record<AlertType, Answer>> = {
  general: () => new Response(null, { status: 204 }),
  slack: (request) => {
    const fault = slackFault(request.json() as Partial<SlackMessage>)
    return fault === undefined ? new Response('ok') : new Response(fault, { status: 400 })
  },
  pagerduty: (request) => {
    const event = request.json() as Partial<PagerDutyEvent>
    const errors = pagerDutyFaults(event)
    if (errors.length > 0) return Response.json({ status: 'invalid event', errors }, { status: 400 })
    return Response.json({ status: 'success', dedup_key: event.dedup_key }, { status: 202 })
  },
}

// https://docs.slack.dev/reference/block-kit/blocks/section-block
function slackFault({ text, blocks = [] }: Partial<SlackMessage>): string | undefined {
  if (typeof text !== 'string' && blocks.length === 0) return 'no_text'
  if (blocks.length > 50) return 'invalid_blocks'
  const isFaulty = (block: SlackMessage['blocks'][number]): boolean =>
    block.type !== 'section' || block.text === undefined || block.text.text === '' || block.text.text.length > 3_000
  return blocks.some(isFaulty) ? 'invalid_blocks' : undefined
}

interface PagerDutyEvent {
  readonly routing_key: string
  readonly event_action: string
  readonly dedup_key: string
  readonly payload: { readonly summary: string; readonly source: string; readonly severity: string }
}

// https://developer.pagerduty.com/docs/send-alert-event
function pagerDutyFaults({ routing_key = '', event_action, payload }: Partial<PagerDutyEvent>): readonly string[] {
  const { summary = '', source = '', severity = '' } = payload ?? {}
  return [
    /^[A-Za-z0-9]{32}$/.test(routing_key) ? '' : "'routing_key' is missing or invalid",
    event_action === 'trigger' ? '' : "'event_action' is missing or invalid",
    summary !== '' && summary.length <= 1_024 ? '' : "'payload.summary' is missing or too long",
    source === '' ? "'payload.source' is missing or blank" : '',
    ['critical', 'error', 'warning', 'info'].includes(severity) ? '' : "'payload.severity' is invalid",
  ].filter((fault) => fault !== '')
}
