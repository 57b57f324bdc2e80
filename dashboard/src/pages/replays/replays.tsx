// Replays: how far each of them is. The one in the address is shown on top, and can be cancelled or resumed.
import type { JSX } from 'preact'
import { Bar, Bones, Button, Chip, Empty, Facts, Failure, Mono, Panel } from '../../components/basics.tsx'
import { Progress } from '../../components/bulk.tsx'
import { SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, countdown, percent, plural, shortId, visible, when } from '../../lib/format.ts'
import type { Page, Replay } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useResource } from '../../state/resource.ts'
import { go, place } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { act } from '../../state/toast.ts'
import { endOf, intoText, paceText, REPLAY_LOOKS, stateText, whatOf } from './replay-words.ts'

export function Replays(): JSX.Element {
  const { id } = place.value
  const { data, error, refresh } = useResource<Page<Replay>>('v1/replays', { every: 2_000 })
  const items = data?.items ?? []
  const running = items.filter(({ state }) => state === 'running').length
  return (
    <Frame
      title={id === undefined ? 'Replays' : 'Replay'}
      remark={
        running === 0 ? 'Stored events, placed in their lanes again.' : `${plural(running, 'replay')} in progress`
      }
      {...(id !== undefined && { path: [{ text: 'Replays', to: 'replays' }] })}
    >
      {id !== undefined && <OneReplay key={id} id={id} />}
      <Panel
        title="All replays"
        remark="newest first"
        controls={
          mayOperate.value && (
            <a class="btn solid" href="replays/new">
              Plan a replay
            </a>
          )
        }
      >
        {error !== undefined && <Failure error={error} onRetry={refresh} />}
        {data === undefined && error === undefined && <Bones rows={6} />}
        {items.length > 0 && (
          <Table
            label="Replays"
            class="replay-table"
            columns={COLUMNS}
            rows={items.slice(0, 60)}
            idOf={(replay) => replay.id}
            hrefOf={(replay) => `replays/${segment(replay.id)}`}
            chosenId={id}
          />
        )}
        {data !== undefined && items.length === 0 && (
          <Empty icon="replays" title="No replay yet.">
            A replay places stored events in their lanes again, behind live events. It is counted first, and can be
            cancelled at any time.
          </Empty>
        )}
      </Panel>
    </Frame>
  )
}

function OneReplay({ id }: { id: string }): JSX.Element {
  const { data: replay, error, refresh } = useResource<Replay>(`v1/replays/${segment(id)}`, { every: 1_000 })
  useKeys({ Escape: () => go('replays') })
  if (replay === undefined) {
    if (error === undefined) return <Bones rows={4} />
    return error.status === 404 ? (
      <Panel>
        <Empty icon="replays" title="There is no such replay.">
          The last 1,000 replays are kept.
        </Empty>
      </Panel>
    ) : (
      <Failure error={error} onRetry={refresh} />
    )
  }
  const now = second.value
  const { state, found, placed, failed, scanned } = replay
  const steer = async (what: 'cancel' | 'resume', done: string): Promise<void> => {
    await act(() => post(`replays/${segment(id)}/${what}`), done)
    refresh()
  }
  return (
    <section class="panel" aria-label="How far it is">
      <SentenceBar
        look={REPLAY_LOOKS[state]}
        acts={
          mayOperate.value &&
          (state === 'running' || state === 'stuck' ? (
            <Button
              icon="s-off"
              onClick={() => void steer('cancel', 'The replay was cancelled. What it placed still runs.')}
            >
              Cancel the replay
            </Button>
          ) : state === 'cancelled' ? (
            <Button icon="s-run" onClick={() => void steer('resume', 'The replay goes on from where it stopped.')}>
              Resume
            </Button>
          ) : undefined)
        }
      >
        {sentenceOf(replay, now)}
      </SentenceBar>
      <Progress
        title={REPLAY_LOOKS[state].word}
        total={found}
        done={Math.max(0, scanned - failed)}
        failed={failed}
        controls={<span class="dim small wide-only">{plural(placed, 'event')} placed</span>}
      />
      {replay.error !== '' && <p class="pad small c-fail">The last failure: {visible(replay.error)}</p>}
      <footer>
        <Facts
          items={[
            ['Reads', whatOf(replay, now)],
            ['Goes', intoText(replay)],
            ['Pace', paceText(replay)],
            ['Started', when(replay.started, now)],
            replay.by === undefined || replay.by === '' ? undefined : ['By', visible(replay.by)],
            ['Skipped', count(replay.skipped)],
            replay.gone === 0 ? undefined : ['Gone', count(replay.gone)],
            ...Object.entries(replay.flows ?? {}).map(
              ([flow, sums]) =>
                [visible(flow), `${count(sums.placed)} placed, ${count(sums.skipped)} skipped`] as const,
            ),
            ['Id', <Mono>{shortId(replay.id, 12)}</Mono>],
          ]}
        />
      </footer>
    </section>
  )
}

function sentenceOf(replay: Replay, now: number): JSX.Element {
  const { state, found, placed, skipped } = replay
  const events = <b>{plural(found, 'event')}</b>
  if (state === 'running') {
    const end = endOf(replay, now)
    return (
      <>
        Places {events} again, {paceText(replay)}; done in about <b>{countdown(Math.max(0, end - now))}</b>.
      </>
    )
  }
  if (state === 'done') {
    return (
      <>
        Placed <b>{count(placed)}</b> of {events} again
        {skipped > 0 && `; no flow wanted the other ${count(skipped)}`}.
      </>
    )
  }
  return state === 'cancelled' ? (
    <>
      Somebody cancelled it after <b>{count(placed)}</b> of {events}. What was placed still runs.
    </>
  ) : (
    <>
      It cannot go on: <b class="c-fail">{visible(replay.error)}</b>
    </>
  )
}

const COLUMNS: readonly Column<Replay>[] = [
  { title: 'State', cell: ({ state }) => <Chip look={REPLAY_LOOKS[state]} plain /> },
  {
    title: 'Replay',
    class: 'cut',
    cell: (replay) => (
      <>
        <a class="type" href={`replays/${segment(replay.id)}`}>
          {whatOf(replay, second.value)} <span class="dim">{intoText(replay)}</span>
        </a>
        <span class="sub cut">{stateText(replay, second.value)}</span>
      </>
    ),
  },
  {
    title: 'Progress',
    isWide: true,
    cell: ({ found, scanned, state }) => (
      <Bar
        label={percent(found === 0 ? 1 : scanned / found)}
        parts={[
          { tone: state === 'cancelled' ? 'still' : 'run', share: found === 0 ? 1 : Math.min(1, scanned / found) },
        ]}
      />
    ),
  },
  {
    title: 'Events',
    isNumber: true,
    class: 'nowrap',
    cell: ({ found, scanned }) => (scanned >= found ? count(found) : `${count(scanned)} of ${count(found)}`),
  },
  {
    title: 'Started',
    isNumber: true,
    isWide: true,
    class: 'dim nowrap',
    cell: ({ started }) => when(started, second.value),
  },
]
