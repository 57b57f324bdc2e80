// One message about a batch for people: a card in Slack or Discord, or an alert in PagerDuty. Whatever is longer than the
// receiver accepts is shortened with a visible mark, because a longer message would fail for ever.
import type { Millis } from '../../clock.ts'
import { parseJson } from '../../model/event.ts'
import type { FlowEvent } from '../../model/flow-event.ts'
import { formatTime } from './events.ts'

const MARK = '…'

// https://docs.slack.dev/reference/block-kit/blocks/section-block: 50 blocks, 3,000 characters in a section.
const SLACK = { events: 20, text: 3_000, allTexts: 9_000, title: 150, fallback: 1_000 } as const
// https://docs.discord.com/developers/resources/message#embed-object-embed-limits: 10 embeds, 6,000 characters in all of them.
const DISCORD = { events: 10, title: 120, text: 4_096, allTexts: 4_500, content: 256 } as const
// https://developer.pagerduty.com/docs/send-alert-event: 1,024 characters of summary, 512 KB in all.
const PAGERDUTY = { summary: 1_024, source: 255, details: 400_000, data: 50_000 } as const
const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const

export function slackBody(events: readonly FlowEvent[]): Buffer {
  const shown = events.slice(0, SLACK.events)
  const most = Math.min(SLACK.text, Math.floor(SLACK.allTexts / shown.length))
  const sections = shown.map((event) => {
    const head = `*${shorten(nameOf(event), SLACK.title, escapeSlack)}*\n`
    return section(head + shorten(describe(event), most - head.length, escapeSlack))
  })
  const rest = events.length - shown.length
  const title = titleOf(events)
  const [first] = events
  const fallback = events.length === 1 && first !== undefined ? `${title}: ${describe(first)}` : title
  return toBytes({
    text: shorten(fallback, SLACK.fallback, escapeSlack),
    blocks: [
      ...(events.length === 1 ? [] : [section(`*${shorten(title, SLACK.title, escapeSlack)}*`)]),
      ...sections,
      ...(rest === 0 ? [] : [section(`${MARK} and ${rest} more`)]),
    ],
  })
}

function section(text: string): object {
  return { type: 'section', text: { type: 'mrkdwn', text, verbatim: true } }
}

/** These three characters begin mentions and links. */
function escapeSlack(character: string): string {
  return SLACK_ENTITIES[character] ?? character
}

const SLACK_ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

export function discordBody(events: readonly FlowEvent[]): Buffer {
  const shown = events.slice(0, DISCORD.events)
  const most = Math.min(DISCORD.text, Math.floor(DISCORD.allTexts / shown.length))
  const rest = events.length - shown.length
  return toBytes({
    content: shorten(titleOf(events), DISCORD.content) + (rest === 0 ? '' : ` (${MARK} ${rest} not shown)`),
    embeds: shown.map((event) => {
      const description = shorten(describe(event), most)
      return {
        title: shorten(nameOf(event), DISCORD.title),
        ...(description !== '' && { description }),
        ...(hasPlainYear(event.time) && { timestamp: formatTime(event.time) }),
      }
    }),
    allowed_mentions: { parse: [] },
  })
}

export interface PagerDutyOptions {
  /** The key of the integration. */
  readonly key: string
  /** The same for all attempts, so that a repeated one opens no second incident. */
  readonly id: string
}

export function pagerDutyBody(events: readonly FlowEvent[], { key, id }: PagerDutyOptions): Buffer {
  const [first] = events
  const latest = events.reduce((time, event) => Math.max(time, event.time), 0)
  const details: object[] = []
  let bytes = 0
  for (const event of events) {
    const detail = toDetail(event)
    bytes += Buffer.byteLength(JSON.stringify(detail))
    if (bytes > PAGERDUTY.details) break
    details.push(detail)
  }
  const omitted = events.length - details.length
  const text = first === undefined ? '' : describe(first)
  return toBytes({
    routing_key: key,
    event_action: 'trigger',
    dedup_key: id,
    payload: {
      summary: shorten(text === '' ? titleOf(events) : `${titleOf(events)}: ${text}`, PAGERDUTY.summary),
      source: shorten(first?.source ?? '', PAGERDUTY.source),
      severity: worstSeverity(events),
      ...(hasPlainYear(latest) && { timestamp: formatTime(latest) }),
      custom_details: { events: details, ...(omitted > 0 && { omitted }) },
    },
  })
}

function toDetail(event: FlowEvent): object {
  const { id, type, subject, data } = event
  const isLarge = event.body.length > PAGERDUTY.data
  const shown = isLarge || data === undefined ? shorten(event.text, PAGERDUTY.data / 10) : data
  return {
    id: shorten(id, 128),
    type: shorten(type, PAGERDUTY.source),
    time: formatTime(event.time),
    ...(subject !== undefined && { subject: shorten(subject, PAGERDUTY.source) }),
    data: shown,
  }
}

/** An alert is an error unless its data says otherwise. */
function worstSeverity(events: readonly FlowEvent[]): string {
  const given = new Set<unknown>(events.map((event) => readMember(event, 'severity')))
  return SEVERITIES.find((severity) => given.has(severity)) ?? 'error'
}

/** `titleOf` names what happened, with the number of events. */
function titleOf(events: readonly FlowEvent[]): string {
  const [first] = events
  if (events.length === 1 && first !== undefined) return nameOf(first)
  const types = new Set(events.map(({ type }) => type))
  return types.size === 1 && first !== undefined ? `${events.length} × ${first.type}` : `${events.length} events`
}

function nameOf(event: FlowEvent): string {
  const title = readMember(event, 'title')
  if (typeof title === 'string' && title.trim() !== '') return title
  return event.subject === undefined ? event.type : `${event.type} · ${event.subject}`
}

/** `describe` returns the `text` or the `message` of the data, or else the data itself. */
function describe(event: FlowEvent): string {
  const text = [readMember(event, 'text'), readMember(event, 'message'), event.data].find(
    (one) => typeof one === 'string' && one.trim() !== '',
  )
  if (typeof text === 'string') return text
  return parseJson(event.body) === undefined && event.body.length > 0 ? `${event.body.length} bytes` : event.text
}

function readMember({ data }: FlowEvent, name: string): unknown {
  if (typeof data !== 'object' || data === null || !Object.hasOwn(data, name)) return undefined
  return data[name as keyof typeof data]
}

/** `shorten` measures the escaped text, and cuts neither an escape sequence nor a surrogate pair in two. */
export function shorten(text: string, most: number, escape?: (character: string) => string): string {
  const limit = Math.max(0, most - MARK.length)
  let made = ''
  let fitting = ''
  for (const character of text
    .slice(0, most + 1)
    .toWellFormed()
    .replaceAll(CONTROL, ' ')) {
    made += escape === undefined ? character : escape(character)
    if (made.length <= limit) fitting = made
    if (made.length > most) return fitting + MARK
  }
  return text.length > most ? fitting + MARK : made
}

/** Control characters except the line break and the tab. */
const CONTROL = /(?![\n\t])\p{Cc}/gu

/** A year of five digits or before 0 has a sign, which few parsers read. */
function hasPlainYear(time: Millis): boolean {
  return /^\d/.test(formatTime(time))
}

/** Half a surrogate pair is valid JSON, but most receivers reject it. */
function toBytes(message: object): Buffer {
  return Buffer.from(
    JSON.stringify(message, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value)),
  )
}
