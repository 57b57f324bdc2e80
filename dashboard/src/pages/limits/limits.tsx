// Limits: how much of each budget is used, who spends it, what paused it, and who gets the next slots.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Bar, Bones, Button, Chip, Empty, Facts, Failure, Panel } from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Phrases, SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, countdown, percent, plural, rateOf, visible, when } from '../../lib/format.ts'
import { limitLook } from '../../lib/states.ts'
import type { Limit, LimitUsage, Page } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useResource } from '../../state/resource.ts'
import { go, place } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { act } from '../../state/toast.ts'
import { causeOf, limitSentence } from './limit-words.ts'
import { Slots, Spenders, UsageChart } from './usage.tsx'

const EVERY = 3_000

export function Limits(): JSX.Element {
  const { id } = place.value
  const { data, error, refresh } = useResource<Page<Limit>>('v1/limits', { every: EVERY })
  const items = data?.items ?? []
  const chosen = id ?? worstOf(items, second.value)?.name
  const at = items.findIndex(({ name }) => name === chosen)
  const open = (index: number): void => {
    const limit = items[Math.max(0, Math.min(items.length - 1, index))]
    if (limit !== undefined) go(hrefOf(limit))
  }
  useKeys({ j: () => open(at + 1), k: () => open(at - 1) })
  return (
    <Frame title="Limits" remark={remarkOf(items, second.value)}>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      {data === undefined && error === undefined && <Bones rows={8} />}
      {data !== undefined && items.length === 0 && id === undefined ? (
        <Panel>
          <Empty icon="limits" title="No limit is declared.">
            <code>{"app.limit('api', { rate: 3, per: '1s' })"}</code> declares one. Any number of flows and processes
            share it.
          </Empty>
        </Panel>
      ) : (
        <div class="cols side-left">
          <Panel label="All limits">
            <ul class="cards">
              {items.map((limit) => (
                <Card key={limit.name} limit={limit} isChosen={limit.name === chosen} />
              ))}
            </ul>
          </Panel>
          {chosen !== undefined && data !== undefined && <OneLimit key={chosen} name={chosen} onChanged={refresh} />}
        </div>
      )}
    </Frame>
  )
}

function hrefOf({ name }: Limit): string {
  return `limits/${segment(name)}`
}

/** Without a choice in the address, the limit that needs most is open. */
function worstOf(limits: readonly Limit[], now: number): Limit | undefined {
  const rank = (limit: Limit): number =>
    (limitLook(limit, now).tone === 'run' ? 0 : 2) + ((limit.waiting ?? 0) > 0 ? 1 : 0) + (limit.used ?? 0)
  return limits.toSorted((one, other) => rank(other) - rank(one))[0]
}

function remarkOf(limits: readonly Limit[], now: number): string | undefined {
  if (limits.length === 0) return undefined
  const busy = limits.filter((limit) => limitLook(limit, now).tone !== 'run').length
  const waiting = limits.reduce((sum, { waiting: lanes = 0 }) => sum + lanes, 0)
  return `${plural(limits.length, 'limit')}; ${busy === 0 ? 'all are free' : `${count(busy)} not free`}${waiting === 0 ? '' : `; ${plural(waiting, 'lane')} waiting`}`
}

function Card({ limit, isChosen }: { limit: Limit; isChosen: boolean }): JSX.Element {
  const now = second.value
  const look = limitLook(limit, now)
  const { used, waiting = 0 } = limit
  return (
    <li class={isChosen ? 'chosen' : ''}>
      <a href={hrefOf(limit)} aria-current={isChosen ? 'true' : undefined}>
        <span class="row">
          <b class="cut">{visible(limit.name)}</b>
          <span class="push">
            <Chip look={look} plain />
          </span>
        </span>
        <span class="dim small">{declared(limit)}</span>
        <Bar
          label={used === undefined ? 'use not known' : `${percent(used)} used`}
          parts={[
            { tone: (used ?? 0) >= 0.9 || look.tone === 'limit' ? 'limit' : 'run', share: Math.min(1, used ?? 0) },
          ]}
        />
        <span class="row small dim">
          <span>{waiting === 0 ? 'nothing waits' : `${plural(waiting, 'lane')} waiting`}</span>
          <span class="push">{used === undefined ? '' : percent(used)}</span>
        </span>
      </a>
    </li>
  )
}

function declared({ name, rate, per, burst = 0 }: Limit): string {
  if (name.startsWith('sluice.replay/')) return 'the pace of a replay'
  if (name.startsWith('sluice.endpoint/')) return 'the rate of an endpoint'
  if (rate === undefined || per === undefined) return 'not declared by this app'
  return `${rateOf(rate, per)}${burst > 0 ? `, bursts of ${count(burst)}` : ''}`
}

function OneLimit({ name, onChanged }: { name: string; onChanged: () => void }): JSX.Element {
  const path = `limits/${segment(name)}`
  const { data: limit, error, refresh } = useResource<Limit>(`v1/${path}`, { every: EVERY })
  const usage = useResource<LimitUsage>(error === undefined ? `v1/${path}/usage` : undefined, { every: EVERY })
  const [isPausing, setPausing] = useState(false)
  const now = second.value
  if (limit === undefined) {
    if (error === undefined) return <Bones rows={8} />
    return error.status === 404 ? (
      <Panel>
        <Empty icon="limits" title="There is no limit with this name.">
          <a href="limits">All limits</a>
        </Empty>
      </Panel>
    ) : (
      <Failure error={error} onRetry={refresh} />
    )
  }
  const reload = (): void => {
    refresh()
    usage.refresh()
    onChanged()
  }
  const isPaused = (limit.pausedUntil ?? 0) > now
  const isSlowed = (limit.stretch ?? 1) > 1.005
  const resume = async (): Promise<void> => {
    await act(() => post(`${path}/resume`), `${visible(name)} gives slots at its full rate again.`)
    reload()
  }
  const pauses = usage.data?.pauses ?? []
  return (
    <div class="stack">
      <section class="panel" aria-label="How it is">
        <SentenceBar
          look={limitLook(limit, now)}
          acts={
            mayOperate.value && (
              <>
                {(isPaused || isSlowed) && (
                  <Button kind="solid" icon="s-run" onClick={() => void resume()}>
                    {isPaused ? 'Resume' : 'Full speed now'}
                  </Button>
                )}
                <Button icon="s-held" onClick={() => setPausing(true)}>
                  Pause…
                </Button>
              </>
            )
          }
        >
          <Phrases of={limitSentence(limit, now)} />
        </SentenceBar>
        {usage.error !== undefined && <Failure error={usage.error} onRetry={usage.refresh} />}
        {usage.data !== undefined && <UsageChart usage={usage.data} limit={limit} />}
        <footer>
          <Facts
            items={[
              ['Declared', declared(limit)],
              limit.stretch === undefined || !isSlowed ? undefined : ['Slowed', `${limit.stretch.toFixed(1)} times`],
              limit.used === undefined ? undefined : ['Used', percent(limit.used)],
              ['Waiting', plural(limit.waiting ?? 0, 'lane')],
              limit.lastSlot === undefined ? undefined : ['Last slot', when(limit.lastSlot, now)],
              limit.busyUntil === undefined || limit.busyUntil <= now
                ? undefined
                : ['Reserved until', `in ${countdown(limit.busyUntil - now)}`],
            ]}
          />
        </footer>
      </section>
      {usage.data !== undefined && (
        <>
          <Slots usage={usage.data} limit={limit} />
          <div class="cols half">
            <Spenders usage={usage.data} />
            <Panel title="What paused it" remark="in this process">
              {pauses.length === 0 ? (
                <p class="pad dim">Nothing, as far as this process remembers.</p>
              ) : (
                <table class="tight pause-table">
                  <thead class="unseen-head">
                    <tr>
                      <th scope="col">At</th>
                      <th scope="col">Cause</th>
                      <th scope="col" class="num">
                        For
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {pauses.map((pause) => (
                      <tr key={`${pause.at} ${pause.ms}`}>
                        <td class="mono nowrap">{when(pause.at, now)}</td>
                        <td class="cut">
                          {causeOf(pause)}
                          {pause.url !== undefined && <span class="sub cut">{visible(pause.url)}</span>}
                        </td>
                        <td class="num c-limit nowrap">{countdown(pause.ms)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </Panel>
          </div>
        </>
      )}
      {isPausing && (
        <PauseDialog
          name={name}
          onClose={() => setPausing(false)}
          onPause={(body) => {
            setPausing(false)
            void act(() => post(`${path}/pause`, body), `${visible(name)} is paused in every process.`).then(reload)
          }}
        />
      )}
    </div>
  )
}

const LENGTHS = ['1m', '10m', '1h', '8h', '24h'] as const

function PauseDialog(props: {
  name: string
  onClose: () => void
  onPause: (body: { readonly for: string; readonly reason: string }) => void
}): JSX.Element {
  const { name, onClose, onPause } = props
  const [reason, setReason] = useState('')
  const [length, setLength] = useState<string>('10m')
  return (
    <Dialog title={`Pause ${visible(name)}`} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          onPause({ for: length, reason: reason.trim() })
        }}
      >
        <p class="soft">
          No call is made under this limit, in any process. Runs that need it wait, and use no attempt.
        </p>
        <label>
          Reason
          <input
            type="text"
            autofocus
            maxLength={200}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <label>
          How long
          <select value={length} onChange={(event) => setLength(event.currentTarget.value)}>
            {LENGTHS.map((value) => (
              <option key={value} value={value}>
                {value}
              </option>
            ))}
          </select>
        </label>
        <div class="btns">
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind="solid" disabled={reason.trim() === ''}>
            Pause the limit
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
