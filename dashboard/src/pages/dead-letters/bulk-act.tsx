// Retries or drops all dead letters that a filter finds: the count first, one to try, then the progress.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Failure } from '../../components/basics.tsx'
import { BulkBar, Progress } from '../../components/bulk.tsx'
import { Phrases } from '../../components/sentence.tsx'
import { address, post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, plural, visible, when } from '../../lib/format.ts'
import type { Phrase } from '../../lib/lane-sentence.ts'
import type { Act, DeadCount } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useResource } from '../../state/resource.ts'
import { setQuery } from '../../state/router.ts'
import { act as perform, say, sayFailed } from '../../state/toast.ts'
import { nounOf, phrasesOf, type Filter } from './filter.ts'

export type Asked = 'retry' | 'drop'

const VERBS = { retry: 'Retry', drop: 'Drop' } as const

function cancel(): void {
  setQuery({ ask: undefined })
}

/** The question about all that the filter finds. */
export function BulkAct(props: { filter: Filter; asked: Asked; onChanged: () => void }): JSX.Element {
  const { filter, asked, onChanged } = props
  const { data, error, refresh } = useResource<DeadCount>(address('dead-letters/count', { ...filter }), {
    every: 5_000,
  })
  const [isBusy, setBusy] = useState(false)
  useKeys({ Escape: cancel })
  if (data === undefined)
    return error === undefined ? <div class="bulk dim">Counting…</div> : <Failure error={error} onRetry={refresh} />
  const send = async (limit?: number): Promise<void> => {
    setBusy(true)
    try {
      const body = { ...filter, ...(limit !== undefined && { limit }) }
      const result = await post<{ count: number; act?: string }>(`dead-letters/${asked}`, body)
      if (result.act === undefined) say(`${asked === 'retry' ? 'Retried' : 'Dropped'} ${count(result.count)}.`)
      setQuery({ act: result.act, ...(limit === undefined && { ask: undefined }) })
    } catch (problem) {
      sayFailed(problem)
    }
    setBusy(false)
    refresh()
    onChanged()
  }
  const isExact = data.exact ?? true
  return (
    <BulkBar
      question={<Phrases of={[`${VERBS[asked]} `, ...phrasesOf(filter, data.count, isExact), '?']} />}
      cost={<Phrases of={costOf(asked, filter, data)} />}
      act={`${VERBS[asked]} ${isExact ? '' : 'all, at least '}${count(data.count)}`}
      isDanger={asked === 'drop'}
      isBusy={isBusy || data.count === 0}
      onAct={() => void send()}
      {...(asked === 'retry' && data.count > 1 && { onTryOne: () => void send(1) })}
      onCancel={cancel}
    />
  )
}

function costOf(asked: Asked, { kind }: Filter, { lanes = 0, events = 0, blocking = 0 }: DeadCount): readonly Phrase[] {
  const goesOn = blocking === 0 ? [] : [`${plural(blocking, 'blocked lane goes', 'blocked lanes go')} on. `]
  if (asked === 'drop') {
    return [
      events === 0 ? '' : `${plural(events, 'event ends', 'events end')} without a run. `,
      ...goesOn,
      'The events stay stored until their retention is over, and can be replayed.',
    ]
  }
  if (kind === 'unrouted') return ['Each event is routed by the flows as they are now.']
  return [
    lanes === 0
      ? 'They run before what waits in their lanes, with all their attempts. '
      : `They run before what waits in their ${plural(lanes, 'lane')}, with all their attempts. `,
    ...goesOn,
    'The same failure makes the same dead letters again.',
  ]
}

/** The question about the rows that were chosen one by one. */
export function ChosenAct(props: { ids: readonly string[]; kind: Filter['kind']; onDone: () => void }): JSX.Element {
  const { ids, kind, onDone } = props
  const [progress, setProgress] = useState<{ act: Asked; done: number; failed: number }>()
  const send = async (act: Asked): Promise<void> => {
    let [done, failed] = [0, 0]
    setProgress({ act, done, failed })
    for (const id of ids) {
      if (await perform(() => post(`dead-letters/${segment(id)}/${act}`))) done += 1
      else failed += 1
      setProgress({ act, done, failed })
    }
    say(`${act === 'retry' ? 'Queued' : 'Dropped'} ${plural(done, nounOf(kind, 1), nounOf(kind, 2))}.`)
    onDone()
  }
  useKeys({ Escape: onDone })
  if (progress !== undefined) {
    const { act, done, failed } = progress
    return <Progress title={act === 'retry' ? 'Retrying' : 'Dropping'} total={ids.length} done={done} failed={failed} />
  }
  return (
    <div class="bulk" role="group" aria-label="Act on the chosen ones">
      <div>
        <p class="question">
          <b>{count(ids.length)}</b> {nounOf(kind, ids.length)} chosen.
        </p>
      </div>
      <div class="btns">
        <Button kind="bare" onClick={onDone}>
          Cancel
        </Button>
        <Button kind="danger" onClick={() => void send('drop')}>
          Drop {count(ids.length)}
        </Button>
        <Button kind="solid" onClick={() => void send('retry')}>
          Retry {count(ids.length)}
        </Button>
      </div>
    </div>
  )
}

/** What became of the dead letters of the last act. */
export function ActProgress({ id }: { id: string }): JSX.Element | null {
  const { data, error } = useResource<Act>(`v1/dead-letters/acts/${segment(id)}`, { every: 1_000 })
  const dismiss = (
    <Button small kind="bare" onClick={() => setQuery({ act: undefined }, { replace: true })}>
      Dismiss
    </Button>
  )
  if (data === undefined) return error === undefined ? null : <Failure error={error} />
  const verb = data.act === 'retry' ? (data.open > 0 ? 'Retrying' : 'Retried') : 'Dropped'
  const at = when(data.at, second.value)
  return (
    <section class="panel" aria-label="Progress">
      <Progress
        title={`${verb} ${count(data.count)}`}
        total={data.count}
        done={data.done}
        failed={data.deadAgain}
        failedWord="dead again"
        controls={
          <>
            <span class="dim small wide-only">
              asked for by {visible(data.by)} at {at}
            </span>
            {dismiss}
          </>
        }
      />
    </section>
  )
}
