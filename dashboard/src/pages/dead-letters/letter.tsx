// One dead letter: what it blocks, its attempts, its events, and what can be done about it.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import {
  Bones,
  Button,
  Code,
  copy,
  Empty,
  Facts,
  Failure,
  IconButton,
  Mono,
  Note,
  Panel,
} from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { duration, plural, shortId, visible, when } from '../../lib/format.ts'
import { linesOf } from '../../lib/json-lines.ts'
import type { Attempt, DeadLetter, Lane } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { setQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { act, say, sayFailed } from '../../state/toast.ts'
import { JsonView } from '../events/payload.tsx'
import { canEdit, RetryEdited } from './retry-edited.tsx'
import { AttemptTable } from '../runs/attempts.tsx'

const MOST_EVENTS = 20

function close(): void {
  setQuery({ id: undefined })
}

export function Letter({ id, onChanged }: { id: string; onChanged: () => void }): JSX.Element {
  const { data: letter, error, refresh } = useResource<DeadLetter>(`v1/dead-letters/${segment(id)}`, { every: 5_000 })
  const [isDropping, setDropping] = useState(false)
  const [isEditing, setEditing] = useState(false)
  useLive(({ id: changed }) => changed === id, refresh)
  const isDead = letter !== undefined && (letter.kind === 'unrouted' || letter.state === 'dead')
  const may = isDead && mayOperate.value
  const retry = async (): Promise<void> => {
    if (!may) return
    try {
      const { result } = await post<{ result: string }>(`dead-letters/${segment(id)}/retry`)
      if (result === 'already') say('Nothing to change: it was retried before.')
      else
        say(
          letter.kind === 'run' ? 'The dead letter is queued and runs next in its lane.' : 'The event is placed again.',
        )
    } catch (problem) {
      sayFailed(problem)
    }
    refresh()
    onChanged()
  }
  const drop = async (): Promise<void> => {
    setDropping(false)
    if (await act(() => post(`dead-letters/${segment(id)}/drop`), 'Dropped 1.')) close()
    onChanged()
  }
  useKeys({ Escape: close, r: () => void retry(), c: () => void copy(id) })
  // What ended in the meantime is gone from the list, and the last answer is no longer true.
  const isGone = error?.status === 404
  if (letter === undefined || isGone) {
    return (
      <Panel title="Dead letter" controls={<IconButton icon="close" label="Close" onClick={close} />}>
        {error === undefined ? (
          <Bones rows={6} />
        ) : isGone ? (
          <Empty icon="check" title="It is no longer a dead letter.">
            It was done, dropped or purged. <a href={`runs/${segment(id)}`}>Open its run</a>
          </Empty>
        ) : (
          <Failure error={error} onRetry={refresh} />
        )}
      </Panel>
    )
  }
  const name = letter.kind === 'run' ? laneName({ flow: letter.flow, key: letter.key ?? '' }) : 'Unrouted event'
  return (
    <Panel
      title={<span class="mono">{name}</span>}
      remark={visible(letter.flow)}
      label={`The dead letter ${name}`}
      controls={<IconButton icon="close" label="Close" onClick={close} />}
    >
      <State letter={letter} />
      <Attempts letter={letter} />
      <Events letter={letter} />
      <div class="pad letter-facts">
        <LetterFacts letter={letter} />
      </div>
      {may && (
        <footer class="row letter-acts" data-acts>
          <Button kind="solid" icon="s-retry" hint="r" onClick={() => void retry()}>
            Retry
          </Button>
          {canEdit(letter) && (
            <Button icon="edit" onClick={() => setEditing(true)}>
              Retry with edit…
            </Button>
          )}
          <span class="push">
            <Button kind="danger" onClick={() => setDropping(true)}>
              Drop…
            </Button>
          </span>
        </footer>
      )}
      {isEditing && (
        <RetryEdited
          letter={letter}
          onClose={() => setEditing(false)}
          onDone={() => {
            close()
            onChanged()
          }}
        />
      )}
      {isDropping && (
        <Dialog title="Drop this dead letter?" onClose={() => setDropping(false)}>
          <p>
            {plural(letter.events.length, 'event')} of <b>{name}</b> {letter.events.length === 1 ? 'ends' : 'end'}{' '}
            without a run. {letter.blocks === true && 'The lane goes on. '}Its events stay stored until their retention
            is over, and can be replayed.
          </p>
          <div class="btns end">
            <Button kind="bare" onClick={() => setDropping(false)}>
              Cancel
            </Button>
            <Button kind="danger" onClick={() => void drop()}>
              Drop 1 dead letter
            </Button>
          </div>
        </Dialog>
      )}
    </Panel>
  )
}

function State({ letter }: { letter: DeadLetter }): JSX.Element | null {
  const { lane: laneId = '', blocks = false } = letter
  // A lane that nothing blocks may be gone.
  const lane = useResource<Lane>(blocks && laneId !== '' ? `v1/lanes/${segment(laneId)}` : undefined, { every: 5_000 })
  if (letter.state === 'queued' || letter.state === 'running') {
    return (
      <div class="pad letter-note">
        <Note tone="wait" icon={letter.state === 'running' ? 's-run' : 's-ready'}>
          <b>It was retried.</b> {letter.state === 'running' ? 'Its run is in progress.' : 'It runs next in its lane.'}{' '}
          {letter.lane !== undefined && (
            <a class="link" href={`lanes/${segment(letter.lane)}`}>
              Follow
            </a>
          )}
        </Note>
      </div>
    )
  }
  if (!blocks) return null
  const waiting = lane.data?.waiting ?? 0
  return (
    <div class="pad letter-note">
      <Note tone="fail" icon="s-blocked">
        <b>Blocks its lane.</b>{' '}
        {waiting > 0 && (
          <>
            <b>{plural(waiting, 'event')}</b> {waiting === 1 ? 'waits' : 'wait'} behind it.{' '}
          </>
        )}
        The option <code>onDead</code> of {visible(letter.flow)} is <code>block</code>.
      </Note>
    </div>
  )
}

function Attempts({ letter }: { letter: DeadLetter }): JSX.Element {
  const attempts = letter.attempts ?? []
  if (attempts.length === 0) {
    const text = letter.error === undefined || letter.error === '' ? letter.reason : letter.error
    return (
      <section class="letter-part">
        <h3>{letter.kind === 'unrouted' ? `Why it has no lane: ${visible(letter.reason)}` : 'The reason'}</h3>
        <div class="pad">
          <Code text={text} label="the error" wrap />
        </div>
      </section>
    )
  }
  return (
    <section class="letter-part">
      <h3>
        {plural(attempts.length, 'attempt')}, {errorsText(attempts)}
      </h3>
      {attempts.length > 1 && <Spread attempts={attempts} />}
      <AttemptTable attempts={attempts} />
    </section>
  )
}

function errorsText(attempts: readonly Attempt[]): string {
  const errors = new Set(attempts.map(({ error }) => error)).size
  return errors === 1 ? 'one error' : `${errors} errors`
}

const MOST_LABELS = 6

/** The attempts side by side, in order; the figure below each is the time since the first one began. */
function Spread({ attempts }: { attempts: readonly Attempt[] }): JSX.Element {
  const first = attempts[0]?.at ?? 0
  const step = 94 / Math.max(1, attempts.length - 1)
  const every = Math.ceil(attempts.length / MOST_LABELS)
  return (
    <div class="pad spread">
      <svg
        class="pic"
        width="100%"
        height="40"
        role="img"
        aria-label="The attempts in order, with the time since the first"
      >
        <line class="bed" x1="0" x2="100%" y1="12.5" y2="12.5" />
        {attempts.map(({ at }, index) => (
          <g key={index}>
            <rect class="u-fail" x={`${2 + index * step}%`} y="2" width="5" height="20" rx="1.5" />
            {index % every === 0 && (
              <text
                class="t-dim"
                x={`${2 + index * step}%`}
                y="36"
                text-anchor={index === 0 ? 'start' : index === attempts.length - 1 ? 'end' : 'middle'}
                dx={index === attempts.length - 1 ? 8 : 0}
              >
                {duration(at - first)}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  )
}

function Events({ letter }: { letter: DeadLetter }): JSX.Element | null {
  const contents = letter.contents ?? []
  const first = contents[0]
  if (first === undefined) return null
  return (
    <section class="letter-part">
      <h3>{letter.events.length === 1 ? 'Its event' : `Its ${plural(letter.events.length, 'event')}`}</h3>
      <ul class="letter-events">
        {contents.slice(0, MOST_EVENTS).map(({ id, type, source }) => (
          <li key={id} class="row">
            <a class="link cut" href={`events/${segment(id)}`}>
              {visible(type)}
            </a>
            <span class="dim cut">{visible(source)}</span>
            <span class="push dim mono">{shortId(id)}</span>
          </li>
        ))}
        {letter.events.length > MOST_EVENTS && <li class="dim">and {letter.events.length - MOST_EVENTS} more</li>}
      </ul>
      <div class="letter-payload">
        <JsonView lines={linesOf(first.data)} />
      </div>
    </section>
  )
}

function LetterFacts({ letter }: { letter: DeadLetter }): JSX.Element {
  const now = second.value
  const { attempts = [], tenant = '' } = letter
  return (
    <Facts
      items={[
        letter.kind === 'run'
          ? [
              'Run',
              <a class="link mono" href={`runs/${segment(letter.id)}`}>
                {shortId(letter.id)}
              </a>,
            ]
          : undefined,
        letter.lane === undefined
          ? undefined
          : [
              'Lane',
              <a class="link" href={`lanes/${segment(letter.lane)}`}>
                open
              </a>,
            ],
        attempts[0] === undefined ? undefined : ['First attempt', when(attempts[0].at, now)],
        [letter.kind === 'run' ? 'Died' : 'Since', when(letter.at, now)],
        tenant === '' ? undefined : ['Tenant', visible(tenant)],
        letter.kind === 'unrouted' ? ['Id', <Mono>{shortId(letter.id, 12)}</Mono>] : undefined,
      ]}
    />
  )
}
