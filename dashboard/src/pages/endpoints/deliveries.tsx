// The batches of an endpoint: those in progress first, then those that ended, each with the answers it got.
import type { JSX } from 'preact'
import { Bones, Chip, Code, Empty, Failure, Panel } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { second } from '../../lib/clock.ts'
import { clockMs, countdown, duration, plural, shortId, visible, when } from '../../lib/format.ts'
import { DELIVERY_LOOKS, LANE_LOOKS, type Look } from '../../lib/states.ts'
import type { Delivery, DeliveryAttempt } from '../../lib/types.ts'
import type { ComponentChildren } from 'preact'
import type { Resource } from '../../state/resource.ts'
import { place, withQuery } from '../../state/router.ts'

export function Deliveries(props: {
  of: Resource<{ readonly items: readonly Delivery[] }>
  controls?: ComponentChildren
}): JSX.Element {
  const { of, controls } = props
  const { data, error, refresh } = of
  const open = place.value.query['batch']
  const chosen = data?.items.find(({ id }) => id === open)
  return (
    <Panel title="Batches" remark="in progress first" controls={controls}>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      {data === undefined && error === undefined && <Bones rows={6} />}
      {data !== undefined && data.items.length > 0 && (
        <Table
          label="Batches"
          class="batch-table tight"
          columns={COLUMNS}
          rows={data.items}
          idOf={({ id }) => id}
          hrefOf={({ id }) => withQuery({ batch: id === open ? undefined : id })}
          chosenId={open}
        />
      )}
      {data?.items.length === 0 && (
        <Empty icon="endpoints" title="No batch yet.">
          A batch shows here as soon as an event matches the filter of the endpoint. A test event shows its answer at
          once.
        </Empty>
      )}
      {chosen !== undefined && <Answers delivery={chosen} />}
    </Panel>
  )
}

function lookOf({ status, attemptCount }: Delivery): Look {
  return status === 'PENDING' && attemptCount > 0 ? LANE_LOOKS.retrying : DELIVERY_LOOKS[status]
}

function answerOf({ attempts, lastError, status }: Delivery): string {
  const last = attempts.at(-1)
  if (last?.status !== undefined) return `HTTP ${last.status}`
  const error = last?.error ?? lastError
  if (error !== '') return visible(error)
  return status === 'SUCCESS' ? '' : 'not sent yet'
}

function thenOf({ status, nextRetryAt, deliveredAt, createdAt }: Delivery): string {
  if (nextRetryAt !== undefined && status === 'PENDING')
    return `next in ${countdown(Math.max(0, nextRetryAt - second.value))}`
  if (deliveredAt !== undefined) return `after ${duration(deliveredAt - createdAt)}`
  return status === 'FAILED' ? 'dead letter' : ''
}

const COLUMNS: readonly Column<Delivery>[] = [
  {
    title: 'State',
    cell: (delivery) => (
      <a href={withQuery({ batch: delivery.id })}>
        <Chip look={lookOf(delivery)} plain />
      </a>
    ),
  },
  { title: 'Events', isNumber: true, cell: ({ events }) => events },
  { title: 'Attempts', isNumber: true, isWide: true, cell: ({ attemptCount }) => attemptCount },
  { title: 'Created', class: 'mono nowrap', isWide: true, cell: ({ createdAt }) => when(createdAt, second.value) },
  { title: 'Last answer', class: 'soft cut', cell: (delivery) => answerOf(delivery) },
  { title: 'Then', class: 'dim cut', cell: (delivery) => thenOf(delivery) },
]

const SHOWN = 8

/** The attempts of one batch, newest first, and the whole answer of the last one. */
function Answers({ delivery }: { delivery: Delivery }): JSX.Element {
  const { attempts, id, status } = delivery
  const last = attempts.at(-1)
  return (
    <div class="answers">
      <div>
        <h3>
          {plural(delivery.attemptCount, 'attempt')} of <span class="mono">{shortId(id, 8)}</span>
          {status === 'FAILED' && (
            <a class="link push" href={`dead-letters?id=${encodeURIComponent(id)}`}>
              Dead letter
            </a>
          )}
        </h3>
        <ol class="attempt-list">
          {attempts
            .slice(-SHOWN)
            .toReversed()
            .map((attempt, index) => (
              <li key={index}>
                <span class="mono">{clockMs(attempt.at)}</span>
                <span class="soft">{duration(attempt.ms)}</span>
                <span class={`cut${attempt.error === '' ? ' c-run' : ' c-fail'}`}>
                  <Icon name={attempt.error === '' ? 'check' : 's-dead'} size={12} /> {resultOf(attempt)}
                </span>
              </li>
            ))}
        </ol>
        {attempts.length > SHOWN && <p class="small dim">The last {SHOWN} attempts are shown.</p>}
      </div>
      <div>
        <h3>What came back</h3>
        {last === undefined ? (
          <p class="dim small">Nothing was posted yet.</p>
        ) : (
          <Code text={textOf(last)} label="the last answer" wrap />
        )}
      </div>
    </div>
  )
}

function resultOf({ status, error }: DeliveryAttempt): string {
  return status === undefined ? visible(error) : `HTTP ${status}`
}

function textOf({ status, error, answer = '' }: DeliveryAttempt): string {
  return [status === undefined ? '' : `HTTP ${status}`, error, answer].filter((part) => part !== '').join('\n')
}
