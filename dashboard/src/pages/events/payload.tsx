// What was in an event: its payload with the lines that changed, its request, its attributes, its receipts.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Code, CopyButton, Empty, Facts, Mono, Panel, Segments, Select } from '../../components/basics.tsx'
import { address, segment } from '../../lib/api.ts'
import { clockMs, visible } from '../../lib/format.ts'
import { linesOf, MOST_LINES, type JsonLine } from '../../lib/json-lines.ts'
import type { EventDetail, EventItem, Page } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery } from '../../state/router.ts'
import { parsed } from './copies.ts'

const LONGEST_TEXT = 200_000

export function Payload({ event }: { event: EventDetail }): JSX.Element {
  const tab = place.value.query['show'] ?? 'payload'
  const [compare, setCompare] = useState('before')
  const value =
    event.body.kind === 'text' && event.body.text.length <= LONGEST_TEXT ? parsed(event.body.text) : undefined
  const isJson = typeof value === 'object' && value !== null
  const before = useEventBefore(event, isJson && compare === 'before')
  const old = before === undefined || before.body.kind !== 'text' ? undefined : parsed(before.body.text)
  const tabs = [
    { value: 'payload', text: 'Payload' },
    ...(isJson ? [{ value: 'raw', text: 'As received' }] : []),
    ...(event.request === undefined ? [] : [{ value: 'request', text: 'Request' }]),
    { value: 'attributes', text: 'Attributes' },
    ...(event.receipts.length > 0 ? [{ value: 'receipts', text: 'Receipts', count: event.receipts.length }] : []),
  ]
  const shown = tabs.some((one) => one.value === tab) ? tab : 'payload'
  return (
    <section class="panel payload" aria-label="What was in it">
      <header>
        <Segments
          label="Show"
          value={shown}
          options={tabs}
          onChange={(next) => setQuery({ show: next === 'payload' ? undefined : next }, { replace: true })}
        />
        {shown === 'payload' && isJson && before !== undefined && (
          <span class="push wide-only">
            <Select
              label="compared with"
              value={compare}
              options={[
                { value: 'before', text: `the event before of ${visible(event.subject)}` },
                { value: 'none', text: 'nothing' },
              ]}
              onChange={setCompare}
            />
          </span>
        )}
      </header>
      {shown === 'payload' && (isJson ? <JsonView lines={linesOf(value, old)} /> : <RawView event={event} />)}
      {shown === 'raw' && <RawView event={event} />}
      {shown === 'request' && <RequestView event={event} />}
      {shown === 'attributes' && <Attributes event={event} />}
      {shown === 'receipts' && <ReceiptTable event={event} />}
    </section>
  )
}

/** The newest earlier event of the same subject and source. */
function useEventBefore(event: EventDetail, isWanted: boolean): EventDetail | undefined {
  const isPossible = isWanted && event.subject !== '' && !event.purged
  const { subject, source, tenant, arrived } = event
  const list = useResource<Page<EventItem>>(
    isPossible ? address('events', { subject, source, tenant, to: arrived, limit: 5 }) : undefined,
  )
  const before = isPossible
    ? list.data?.items.find(({ id, arrived: at }) => id !== event.id && at <= arrived)
    : undefined
  const detail = useResource<EventDetail>(before === undefined ? undefined : `v1/events/${segment(before.id)}`)
  return before === undefined ? undefined : detail.data
}

/** JSON with line numbers; lines that changed say what they were. All of it is text. */
export function JsonView({ lines }: { lines: readonly JsonLine[] }): JSX.Element {
  return (
    <>
      {/* A block that scrolls must be reachable by keyboard. */}
      <div class="json code" tabIndex={0} role="group" aria-label="Payload as JSON">
        {lines.map((line, index) => (
          <div key={index} class={line.was === undefined ? '' : 'changed'}>
            <span>
              {'  '.repeat(line.indent)}
              {line.key !== undefined && (
                <>
                  <span class="k">{JSON.stringify(line.key)}</span>:{' '}
                </>
              )}
              <span class={line.kind}>{visibleLine(line.text)}</span>
              {line.comma && ','}
            </span>
            {line.was !== undefined && <i>{visibleLine(line.was)}</i>}
          </div>
        ))}
      </div>
      {lines.length >= MOST_LINES && (
        <footer>The first {MOST_LINES} lines are shown. “As received” has all of it.</footer>
      )}
    </>
  )
}

/** Characters without a glyph, and those that turn the direction of a text, are shown as a mark. */
function visibleLine(text: string): string {
  return text === '' ? '' : visible(text)
}

function RawView({ event }: { event: EventDetail }): JSX.Element {
  const { text, kind } = event.body
  if (event.purged) return <Empty icon="events" title="The data of this event was purged." />
  if (text === '') return <Empty icon="events" title="The payload is empty." />
  return (
    <div class="pad">
      <Code
        text={text.slice(0, LONGEST_TEXT)}
        label={kind === 'base64' ? 'the payload as base64' : 'the payload'}
        wrap
      />
      {kind === 'base64' && <p class="small dim">The bytes are no UTF-8 text, so they are shown as base64.</p>}
      {text.length > LONGEST_TEXT && (
        <p class="small dim">The first {LONGEST_TEXT.toLocaleString('en')} characters are shown.</p>
      )}
    </div>
  )
}

function RequestView({ event }: { event: EventDetail }): JSX.Element {
  const { request } = event
  if (request === undefined) return <Empty icon="events" title="Code published this event; there was no request." />
  const text = [
    `${request.method} ${request.url}`,
    ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
  ].join('\n')
  return (
    <div class="pad stack">
      <Facts
        items={[
          ['From', <Mono>{request.address}</Mono>],
          ['Request', <Mono>{request.id}</Mono>],
        ]}
      />
      <Code text={text} label="the request" wrap />
      <p class="small dim">Secrets are left out. Headers come from the sender.</p>
    </div>
  )
}

function Attributes({ event }: { event: EventDetail }): JSX.Element {
  const entries = Object.entries(event.attributes)
  if (entries.length === 0) return <Empty icon="events" title="The sender sent no further attributes." />
  return (
    <dl class="facts long pad">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>
            <Mono>{visible(typeof value === 'string' ? value : JSON.stringify(value))}</Mono>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function ReceiptTable({ event }: { event: EventDetail }): JSX.Element {
  return (
    <Panel class="bare-panel">
      <table class="tight">
        <thead>
          <tr>
            <th scope="col">Arrived</th>
            <th scope="col">Result</th>
            <th scope="col">Hash of the body</th>
          </tr>
        </thead>
        <tbody>
          {event.receipts.map(({ at, kind, bodyHash }, index) => (
            <tr key={index}>
              <td class="mono">{clockMs(at)}</td>
              <td>{kind === 'conflict' ? 'conflict: other bytes, not stored' : 'duplicate: same bytes'}</td>
              <td class="row">
                <Mono>{bodyHash.slice(0, 16)}</Mono>
                <CopyButton text={bodyHash} label="Copy the hash" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  )
}
