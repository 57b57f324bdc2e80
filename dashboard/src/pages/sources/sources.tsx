// Sources: what was refused, how far it came, and what the fix is.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { At, Bones, Button, Chip, Code, Empty, Facts, Failure, Mono, Note, Panel } from '../../components/basics.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SecretOnce } from '../../components/secret-once.tsx'
import { SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { bytes, clock, count, plural, since, visible, when } from '../../lib/format.ts'
import { linkTo } from '../../lib/routes.ts'
import { lastMinute, type Rate } from '../../lib/rates.ts'
import type { Look } from '../../lib/states.ts'
import type { Page, RefusedRequest, Sample, Source, Stats, StatsPoint } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { place, withQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { say, sayFailed } from '../../state/toast.ts'
import { Autopsy } from './autopsy.tsx'

/** The requests to no source are listed under this name, which no source can have. */
const NO_SOURCE = '-'
const EVERY = 5_000

const REFUSES: Look = { tone: 'ready', icon: 's-warn', word: 'Refuses' }
const WELL: Look = { tone: 'run', icon: 's-up', word: 'Accepts' }
const QUIET: Look = { tone: 'still', icon: 's-idle', word: 'Quiet' }

export function Sources(): JSX.Element {
  const { id } = place.value
  const { data, error, refresh } = useResource<Page<Source>>('v1/sources', { every: EVERY })
  const stats = useResource<Stats>('v1/stats?window=1h&step=1m&by=source', { every: 10_000 })
  const pointsOf = (source: string): readonly StatsPoint[] | undefined =>
    stats.data?.groups.find((group) => group.source === source)?.series
  const items = data?.items ?? []
  const chosen =
    id ?? items.toSorted((one, other) => (other.refusedHour ?? 0) - (one.refusedHour ?? 0))[0]?.name ?? NO_SOURCE
  const refused = items.reduce((sum, { refusedHour = 0 }) => sum + refusedHour, 0)
  const received = items.reduce((sum, { receivedHour = 0 }) => sum + receivedHour, 0)
  return (
    <Frame
      title="Sources"
      remark={
        data === undefined
          ? undefined
          : `${plural(items.length, 'source')}; in the last hour ${plural(received, 'event')} received, ${plural(refused, 'request')} refused`
      }
    >
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      {data === undefined && error === undefined && <Bones rows={8} />}
      {data !== undefined && (
        <div class="cols side-left">
          <Panel label="All sources">
            <ul class="cards">
              {items.map((source) => (
                <Card
                  key={source.name}
                  source={source}
                  points={pointsOf(source.name)}
                  isChosen={source.name === chosen}
                />
              ))}
              <li class={chosen === NO_SOURCE ? 'chosen' : ''}>
                <a href={`sources/${NO_SOURCE}`} aria-current={chosen === NO_SOURCE ? 'true' : undefined}>
                  <b>To no source</b>
                  <span class="dim small">requests to unknown paths</span>
                </a>
              </li>
            </ul>
          </Panel>
          <OneSource key={chosen} name={chosen} source={items.find(({ name }) => name === chosen)} />
        </div>
      )}
    </Frame>
  )
}

function lookOf({ refusedHour = 0, receivedHour = 0 }: Source): Look {
  if (refusedHour > 0) return REFUSES
  return receivedHour > 0 ? WELL : QUIET
}

function Card(props: { source: Source; points: readonly StatsPoint[] | undefined; isChosen: boolean }): JSX.Element {
  const { source, points, isChosen } = props
  const { name, scheme, verified = true, receivedHour = 0, refusedHour = 0 } = source
  return (
    <li class={isChosen ? 'chosen' : ''}>
      <a href={`sources/${segment(name)}`} aria-current={isChosen ? 'true' : undefined}>
        <span class="row">
          <b class="cut">{visible(name)}</b>
          <span class="push">
            <Chip
              look={lookOf(source)}
              plain
              text={refusedHour > 0 ? `${count(refusedHour)} refused` : lookOf(source).word}
            />
          </span>
        </span>
        <span class="row small dim">
          <span class="cut">{verified ? visible(scheme) : 'not verified'}</span>
          <span class="push nowrap">
            {points === undefined ? `${count(receivedHour)} this hour` : rateText(lastMinute(points))}
          </span>
        </span>
        <RateBars points={points} />
      </a>
    </li>
  )
}

function rateText({ received, isPartial }: Rate): string {
  return `${count(received)} ${isPartial ? 'so far' : 'a minute'}`
}

const BARS = 30
const TALLEST = 16

/** One bar for two minutes of the last hour. */
function RateBars({ points = [] }: { points: readonly StatsPoint[] | undefined }): JSX.Element {
  const width = 100 / BARS
  const pairs = Array.from({ length: BARS }, (_, index) => {
    const end = points.length - (BARS - 1 - index) * 2
    return points.slice(Math.max(0, end - 2), Math.max(0, end)).reduce((sum, { received }) => sum + received, 0)
  })
  const most = Math.max(1, ...pairs)
  return (
    <svg class="pic" width="100%" height={TALLEST} aria-hidden="true">
      {pairs.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * TALLEST)
        return (
          <rect
            key={index}
            class={value === 0 ? 'u-none' : 'u-wait soon'}
            x={`${index * width}%`}
            width={`${width * 0.76}%`}
            y={TALLEST - height}
            height={height}
          />
        )
      })}
    </svg>
  )
}

function OneSource({ name, source }: { name: string; source: Source | undefined }): JSX.Element {
  const { data, error, refresh } = useResource<Page<RefusedRequest>>(`v1/sources/${segment(name)}/refused`, {
    every: EVERY,
  })
  const items = data?.items ?? []
  const wanted = place.value.query['request']
  const chosen = items.find(({ request }) => request === wanted) ?? items[0]
  if (data === undefined) {
    if (error === undefined) return <Bones rows={8} />
    return error.status === 404 ? (
      <Panel>
        <Empty icon="sources" title="There is no source with this name.">
          <a href="sources">All sources</a>
        </Empty>
      </Panel>
    ) : (
      <Failure error={error} onRetry={refresh} />
    )
  }
  return (
    <div class="stack">
      <section class="panel" aria-label="What was refused">
        <SentenceBar
          look={items.length > 0 ? REFUSES : source === undefined ? QUIET : lookOf(source)}
          acts={
            <>
              {source !== undefined && (
                <a class="btn" href={linkTo('events', { source: name })}>
                  Its events
                </a>
              )}
              {source !== undefined && mayOperate.value && (
                <>
                  <SignedSample name={name} />
                  <SourceSecret name={name} />
                </>
              )}
            </>
          }
        >
          {sentenceOf(name, items, source)}
        </SentenceBar>
        {chosen !== undefined && <Autopsy request={chosen} />}
        {source !== undefined && (
          <footer>
            <Facts
              items={[
                ['Path', <Mono>{visible(source.path)}</Mono>],
                ['Scheme', visible(source.scheme)],
                source.receivedHour === undefined ? undefined : ['Received this hour', count(source.receivedHour)],
                source.lastReceived === undefined
                  ? undefined
                  : ['Last received', when(source.lastReceived, second.value)],
                ...Object.entries(source.byReason ?? {}).map(([code, n]) => [code, count(n)] as const),
              ]}
            />
          </footer>
        )}
      </section>
      {items.length > 0 && (
        <div class="cols half">
          <Panel title="Refused requests" remark="the newest 50 are kept">
            <Table
              label="Refused requests"
              class="refused-table tight"
              columns={COLUMNS}
              rows={items}
              idOf={({ request }) => request}
              hrefOf={({ request }) => withQuery({ request })}
              chosenId={chosen?.request}
            />
          </Panel>
          {chosen !== undefined && (
            <Panel title="The request" remark="without headers that could be secret">
              <div class="pad">
                <Code text={requestText(chosen)} label="the request" wrap />
              </div>
            </Panel>
          )}
        </div>
      )}
      {items.length === 0 && source !== undefined && (
        <Panel>
          <Empty icon="sources" title="No request was refused.">
            A request with a wrong signature, an old timestamp or too large a body shows here, with the reason and the
            fix.
            <Code text={`sluice send ${name}`} label="a signed test request" />
          </Empty>
        </Panel>
      )}
    </div>
  )
}

function sentenceOf(name: string, items: readonly RefusedRequest[], source: Source | undefined): JSX.Element {
  const oldest = items.at(-1)
  const newest = items[0]
  const passed = source?.receivedHour
  if (oldest === undefined || newest === undefined) {
    return name === NO_SOURCE ? (
      <>No request went to an unknown path.</>
    ) : (
      <>
        Nothing was refused
        {passed !== undefined && (
          <>
            ; <b>{plural(passed, 'event')}</b> received in the last hour
          </>
        )}
        .
      </>
    )
  }
  const codes = new Set(items.map(({ code }) => code))
  return (
    <>
      <b>{plural(items.length, 'request')}</b> {items.length === 1 ? 'was' : 'were'} refused{' '}
      {since(oldest.at, second.value)},{' '}
      {codes.size === 1 ? (
        <>
          all with <b class="c-ready">{wordsOf(newest.code)}</b>
        </>
      ) : (
        `for ${codes.size} reasons`
      )}
      {passed !== undefined && `; ${plural(passed, 'event')} passed in the last hour`}.
    </>
  )
}

/** Writes an error code as words: SIGNATURE_WRONG becomes "signature wrong". */
function wordsOf(code: string): string {
  return visible(code.toLowerCase().replaceAll('_', ' '))
}

const COLUMNS: readonly Column<RefusedRequest>[] = [
  {
    title: 'At',
    class: 'mono nowrap',
    cell: ({ at, request }) => (
      <a href={withQuery({ request })} aria-label={`${clock(at)}, request ${request}`}>
        <At at={at} />
      </a>
    ),
  },
  { title: 'Reason', class: 'cut', cell: ({ code }) => wordsOf(code) },
  { title: 'From', class: 'mono soft cut', isWide: true, cell: ({ address }) => visible(address) },
  { title: 'Size', isNumber: true, class: 'dim nowrap', cell: ({ bytes: size }) => bytes(size) },
]

function requestText({ method, path, headers, excerpt }: RefusedRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`${method} ${path}`, ...lines, ...(excerpt === '' ? [] : ['', excerpt])].join('\n')
}

/** A test request that the source accepts, as a command for a terminal. */
function SignedSample({ name }: { name: string }): JSX.Element {
  const [sample, setSample] = useState<Sample>()
  const sign = async (): Promise<void> => {
    try {
      setSample(await post<Sample>(`sources/${segment(name)}/sample`, { origin: globalThis.location.origin }))
    } catch (error) {
      sayFailed(error)
    }
  }
  return (
    <>
      <Button icon="check" onClick={() => void sign()}>
        Signed test request
      </Button>
      {sample !== undefined && (
        <Dialog title={`A test request to ${visible(name)}`} onClose={() => setSample(undefined)}>
          <p class="soft">It is signed with the secret of the source, so it is accepted and stored as an event.</p>
          <Code text={sample.curl} label="the request as curl" wrap />
        </Dialog>
      )}
    </>
  )
}

/** The secret that came by handshake, to compare or to forget. */
function SourceSecret({ name }: { name: string }): JSX.Element {
  const [secret, setSecret] = useState<string>()
  const [isForgetting, setForgetting] = useState(false)
  const show = async (): Promise<void> => {
    try {
      const result = await post<{ secret?: string }>(`sources/${segment(name)}/show-secret`)
      if (result.secret === undefined) say('No handshake brought a secret: the app sets it in code.')
      else setSecret(result.secret)
    } catch (error) {
      sayFailed(error)
    }
  }
  const forget = async (): Promise<void> => {
    setForgetting(false)
    setSecret(undefined)
    try {
      const { result } = await post<{ result: string }>(`sources/${segment(name)}/forget-secret`)
      say(result === 'forgotten' ? 'The source waits for the next handshake.' : 'There was no secret to forget.')
    } catch (error) {
      sayFailed(error)
    }
  }
  return (
    <>
      <Button icon="keys" onClick={() => void show()}>
        Secret of the handshake
      </Button>
      {secret !== undefined && (
        <SecretOnce
          title={`The secret of ${visible(name)}`}
          secret={secret}
          isKept
          onClose={() => setSecret(undefined)}
        >
          <Note tone="still" icon="s-idle">
            It came by handshake. Compare it with the one that the provider shows.{' '}
            <button type="button" class="link" onClick={() => setForgetting(true)}>
              Forget it
            </button>
          </Note>
        </SecretOnce>
      )}
      {isForgetting && (
        <Confirm
          title="Forget this secret?"
          act="Forget the secret"
          onAct={() => void forget()}
          onClose={() => setForgetting(false)}
        >
          <p>The source refuses every request until the next handshake brings a new secret.</p>
        </Confirm>
      )}
    </>
  )
}
