// One endpoint: how it is, since when, what waits for it, what it answered, and what it takes.
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Bones, Button, Empty, Facts, Failure, Mono, Panel } from '../../components/basics.tsx'
import { Phrases, SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, countdown, dateOf, duration, percent, plural, since, visible, when } from '../../lib/format.ts'
import type { Phrase } from '../../lib/lane-sentence.ts'
import { HEALTH_LOOKS, healthOf } from '../../lib/states.ts'
import type { Delivery, Endpoint } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { go, place, setQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { say, sayFailed } from '../../state/toast.ts'
import { EndpointActs, RotateSecret } from './acts.tsx'
import { Deliveries } from './deliveries.tsx'
import { nameOf } from './endpoints.tsx'
import { DayBars } from './health-strip.tsx'
import { ReplayToEndpoint } from './replay.tsx'
import { SecretTimes } from './secret-times.tsx'

const EVERY = 4_000

export function EndpointPage(): JSX.Element {
  const id = place.value.id ?? ''
  const path = `webhooks/subscribers/${segment(id)}`
  const { data: endpoint, error, refresh } = useResource<Endpoint>(`v1/${path}`, { every: EVERY })
  const deliveries = useResource<{ items: readonly Delivery[] }>(
    error?.status === 404 ? undefined : `v1/${path}/deliveries?limit=25`,
    { every: EVERY },
  )
  const { edit, ask } = place.value.query
  const reload = (): void => {
    refresh()
    deliveries.refresh()
  }
  useLive(
    ({ kind, key = '' }) => (kind === 'settled' || kind === 'dead' || kind === 'claimed') && key.startsWith(id),
    reload,
  )
  useKeys({ Escape: () => (edit === undefined ? go('endpoints') : setQuery({ edit: undefined })) })
  const crumbs = [{ text: 'Endpoints', to: 'endpoints' }]
  if (endpoint === undefined) {
    return (
      <Frame title="Endpoint" path={crumbs}>
        {error === undefined ? (
          <Bones rows={8} />
        ) : error.status === 404 ? (
          <Panel>
            <Empty icon="endpoints" title="There is no such endpoint.">
              It may have been deleted. <a href="endpoints">All endpoints</a>
            </Empty>
          </Panel>
        ) : (
          <Failure error={error} onRetry={refresh} />
        )}
      </Frame>
    )
  }
  const lastStatus = deliveries.data?.items.find(({ attempts }) => attempts.length > 0)?.attempts.at(-1)?.status
  const may = mayOperate.value
  const dead = endpoint.health?.failedBatches ?? 0
  return (
    <Frame title={nameOf(endpoint)} remark={<Mono>{visible(endpoint.url)}</Mono>} path={crumbs}>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      <section class="panel" aria-label="How it is">
        <SentenceBar
          look={HEALTH_LOOKS[healthOf(endpoint)]}
          acts={may ? <EndpointActs endpoint={endpoint} onChanged={reload} /> : undefined}
        >
          <Phrases of={sentenceOf(endpoint, lastStatus, second.value)} />
        </SentenceBar>
        {endpoint.lastDay !== undefined && <DayBars of={endpoint.lastDay} />}
        <footer>
          <Facts items={healthFacts(endpoint, second.value)} />
        </footer>
      </section>
      {edit === 'transform' || edit === 'filter' ? (
        <Editor which={edit} endpoint={endpoint} onChanged={reload} />
      ) : (
        <div class="cols side-right endpoint-cols">
          <Deliveries
            of={deliveries}
            controls={
              may && (
                <>
                  {dead > 0 && (
                    <Button small icon="s-retry" onClick={() => void retryDead(path, reload)}>
                      Retry {plural(dead, 'dead letter')}
                    </Button>
                  )}
                  <Button small icon="replays" onClick={() => setQuery({ ask: 'replay' })}>
                    Replay…
                  </Button>
                </>
              )
            }
          />
          <Side endpoint={endpoint} may={may} />
        </div>
      )}
      {may && ask === 'replay' && <ReplayToEndpoint endpoint={endpoint} onClose={() => setQuery({ ask: undefined })} />}
      {may && ask === 'rotate' && (
        <RotateSecret endpoint={endpoint} onClose={() => setQuery({ ask: undefined })} onChanged={reload} />
      )}
    </Frame>
  )
}

async function retryDead(path: string, onDone: () => void): Promise<void> {
  try {
    const { count: retried } = await post<{ count: number }>(`${path}/replay`, { dead: true })
    say(`${plural(retried, 'dead letter')} queued for another delivery.`)
  } catch (error) {
    sayFailed(error)
  }
  onDone()
}

function closeEditor(): void {
  setQuery({ edit: undefined })
}

/** The editor is loaded when somebody opens it. */
function Editor(props: { which: 'filter' | 'transform'; endpoint: Endpoint; onChanged: () => void }): JSX.Element {
  const [module, setModule] = useState<typeof import('./editor.tsx')>()
  useEffect(() => void import('./editor.tsx').then(setModule), [])
  if (module === undefined) return <Bones rows={8} />
  const { which, endpoint, onChanged } = props
  return which === 'filter' ? (
    <module.FilterEditor endpoint={endpoint} onClose={closeEditor} onChanged={onChanged} />
  ) : (
    <module.TransformEditor endpoint={endpoint} onClose={closeEditor} onChanged={onChanged} />
  )
}

const bold = (text: string): Phrase => ({ text })

const UNITS: Readonly<Record<string, string>> = { ms: 'millisecond', s: 'second', m: 'minute', h: 'hour', d: 'day' }

/** `durationText` writes the duration of an option in words: 5d becomes 5 days. */
function durationText(text: string): string {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  const name = UNITS[unit]
  return name === undefined ? text : plural(Number(amount), name)
}

function sentenceOf(endpoint: Endpoint, lastStatus: number | undefined, now: number): readonly Phrase[] {
  const { health, waiting = 0, nextTry, lastSuccessfulDeliveryAt: last } = endpoint
  const state = healthOf(endpoint)
  const waits: readonly Phrase[] =
    waiting === 0 ? [] : [' ', bold(plural(waiting, 'event')), waiting === 1 ? ' waits for it' : ' wait for it']
  const next: readonly Phrase[] =
    nextTry === undefined
      ? []
      : [`${waiting === 0 ? ' The' : '; the'} next attempt is `, bold(`in ${countdown(Math.max(0, nextTry - now))}`)]
  const end = waits.length + next.length > 0 ? '.' : ''
  if (state === 'paused')
    return ['Somebody paused it.', ...waits, waits.length > 0 ? ' until somebody resumes it.' : '']
  if (state === 'unproven') return ['It gets nothing until it proves that its owner wants the events.', ...waits, end]
  if (state === 'down' || state === 'degraded' || state === 'disabled') {
    const why = visible(health?.why ?? '')
    const from = health?.failingSince === undefined ? '' : ` It has been failing ${since(health.failingSince, now)}`
    const tone = state === 'degraded' ? 'ready' : 'fail'
    const answer: readonly Phrase[] =
      from === '' || lastStatus === undefined ? [] : [', with ', { text: `HTTP ${lastStatus}`, tone }]
    const stop = from === '' ? '' : '.'
    return [{ text: why, tone }, from, ...answer, stop, ...waits, ...next, end]
  }
  if (last === undefined) return ['It takes what we send; nothing was delivered yet.', ...waits, ...next, end]
  const rate = health?.successRate
  return [
    'It takes what we send: ',
    ...(rate === undefined ? [] : [bold(percent(rate)), ` of ${plural(health?.attempts ?? 0, 'attempt')} in 24 h, `]),
    'the last at ',
    bold(when(last, now)),
    '.',
    ...waits,
    ...next,
    end,
  ]
}

function healthFacts(
  { health, lastSuccessfulDeliveryAt: last }: Endpoint,
  now: number,
): (readonly [string, ComponentChildren] | undefined)[] {
  return [
    health?.successRate === undefined ? undefined : ['Delivered in 24 h', percent(health.successRate)],
    health?.responseMs === undefined ? undefined : ['Response', duration(health.responseMs)],
    health?.latencyMs === undefined ? undefined : ['From event to delivery', duration(health.latencyMs)],
    health === undefined ? undefined : ['Failures in a row', count(health.consecutiveFailures)],
    health === undefined ? undefined : ['Breaker', health.breaker],
    health === undefined ? undefined : ['Dead letters', count(health.failedBatches)],
    ['Last delivered', last === undefined ? 'never' : when(last, now)],
  ]
}

function Side({ endpoint, may }: { endpoint: Endpoint; may: boolean }): JSX.Element {
  const { eventFilter, where, tenant, rate, signing, headers, form, disableAfter, createdAt, transform, history } =
    endpoint
  const edit = (which: string): JSX.Element | undefined =>
    may ? (
      <Button small icon="edit" onClick={() => setQuery({ edit: which })}>
        Edit
      </Button>
    ) : undefined
  return (
    <div class="stack">
      <Panel title="What it takes" controls={edit('filter')}>
        <div class="pad">
          <Rows
            items={[
              [
                'Types',
                eventFilter.every((glob) => glob === '**') ? 'everything published' : <Tags of={eventFilter} />,
              ],
              where === null || where === undefined ? undefined : ['Content', <Mono>{JSON.stringify(where)}</Mono>],
              tenant === '' ? undefined : ['Tenant', visible(tenant)],
              ['Rate', rate === null ? 'no limit' : `${count(rate.rate)} in ${rate.per}`],
              history === undefined
                ? undefined
                : [
                    'History',
                    <a class="link" href={`replays/${segment(history.replay)}`}>
                      on its way
                    </a>,
                  ],
            ]}
          />
        </div>
      </Panel>
      <Panel title="What it gets" controls={edit('transform')}>
        <div class="pad">
          <Rows
            items={[
              ['Body', typeof form === 'string' ? form : <Mono>{JSON.stringify(form)}</Mono>],
              ['Transformation', typeof transform === 'number' ? `version ${transform}` : 'none'],
              ['Signature', signing.kind === 'standard' ? 'Standard Webhooks' : signing.kind],
              headers.length === 0 ? undefined : ['Headers', <Tags of={headers} />],
            ]}
          />
        </div>
      </Panel>
      <Panel
        title="Secret"
        remark="encrypted, never shown"
        controls={
          may && (
            <Button small icon="keys" onClick={() => setQuery({ ask: 'rotate' })}>
              Rotate…
            </Button>
          )
        }
      >
        <div class="pad">
          {endpoint.secrets !== undefined && <SecretTimes of={endpoint.secrets} />}
          <Rows
            items={[
              ['Endpoint since', dateOf(createdAt)],
              ['Disabled after', disableAfter === null ? 'never' : `${durationText(disableAfter)} of failures`],
              ['Id', <Mono>{endpoint.id}</Mono>],
            ]}
          />
        </div>
      </Panel>
    </div>
  )
}

function Tags({ of }: { of: readonly string[] }): JSX.Element {
  return (
    <span class="row wrap">
      {of.map((text) => (
        <span key={text} class="tag">
          {visible(text)}
        </span>
      ))}
    </span>
  )
}

function Rows({ items }: { items: readonly (readonly [string, ComponentChildren] | undefined)[] }): JSX.Element {
  return (
    <dl class="facts long">
      {items.map(
        (item) =>
          item !== undefined && (
            <div key={item[0]}>
              <dt>{item[0]}</dt>
              <dd>{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
