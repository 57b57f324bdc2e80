// What an operator can do to a lane. The list and the page of a lane share it.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { post } from '../../lib/api.ts'
import { plural, visible } from '../../lib/format.ts'
import { shownState } from '../../lib/states.ts'
import type { Lane } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { mayOperate } from '../../state/session.ts'
import { say, sayFailed } from '../../state/toast.ts'

const OTHER_RESULTS = {
  already: 'Nothing to change: the lane is in that state already.',
  running: 'A live run prevents this. Cancel the run first, or wait until it ends.',
  missing: 'The lane is gone: its events have run.',
} as const

export interface LaneActs {
  readonly runNow: () => void
  readonly hold: () => void
  readonly unhold: () => void
  readonly cancel: () => void
  readonly drop: () => void
  readonly dialog: JSX.Element | null
}

/** `useLaneActs` returns the acts on a lane; an act that the lane or the role does not allow does nothing. */
export function useLaneActs(lane: Lane | undefined, onChanged: () => void): LaneActs {
  const [asked, setAsked] = useState<'hold' | 'drop'>()
  const may = lane !== undefined && mayOperate.value
  const name = lane === undefined ? '' : `${visible(lane.flow)} / ${laneName(lane)}`
  const perform = async (path: string, body: unknown, done: string): Promise<void> => {
    if (!may) return
    setAsked(undefined)
    try {
      const { result } = await post<{ result: keyof typeof OTHER_RESULTS | 'ok' }>(`lanes/${lane.id}/${path}`, body)
      say(result === 'ok' ? done : OTHER_RESULTS[result])
    } catch (error) {
      sayFailed(error)
    }
    onChanged()
  }
  const close = (): void => setAsked(undefined)
  return {
    runNow: () =>
      may &&
      canRunNow(lane) &&
      void perform('run-now', {}, `${name} is due now, with ${plural(eventsOf(lane), 'event')}.`),
    hold: () => may && lane.hold === undefined && setAsked('hold'),
    unhold: () => void perform('unhold', {}, `The hold of ${name} has ended.`),
    cancel: () => void perform('cancel', {}, `The run of ${name} was asked to cancel.`),
    drop: () => may && lane.waiting > 0 && setAsked('drop'),
    dialog:
      !may || asked === undefined ? null : asked === 'hold' ? (
        <HoldDialog
          name={name}
          onClose={close}
          onHold={(reason, length) =>
            void perform('hold', { reason, ...(length === '' ? {} : { for: length }) }, `${name} is held.`)
          }
        />
      ) : (
        <Dialog title={`Drop ${plural(lane.waiting, 'event')}?`} onClose={close}>
          <p>
            The {plural(lane.waiting, 'event')} that <b>{lane.waiting === 1 ? 'waits' : 'wait'}</b> in <b>{name}</b>{' '}
            {lane.waiting === 1 ? 'ends' : 'end'} without a run. The events stay stored and can be replayed.
          </p>
          <div class="btns end">
            <Button kind="bare" onClick={close}>
              Cancel
            </Button>
            <Button
              kind="danger"
              onClick={() => void perform('drop', {}, `${plural(lane.waiting, 'event')} of ${name} were dropped.`)}
            >
              Drop {plural(lane.waiting, 'event')}
            </Button>
          </div>
        </Dialog>
      ),
  }
}

function eventsOf(lane: Lane): number {
  return lane.run?.events ?? lane.waiting
}

function canRunNow(lane: Lane): boolean {
  return ['waiting', 'retrying', 'snoozed', 'limited'].includes(shownState(lane))
}

interface ButtonsProps {
  lane: Lane
  acts: LaneActs
  isSmall?: boolean
}

/** The acts that make sense in the state of the lane, the likeliest first. */
export function LaneActButtons({ lane, acts, isSmall = false }: ButtonsProps): JSX.Element {
  const isHeld = lane.hold !== undefined
  const isRunning = lane.run?.state === 'running'
  return (
    <>
      {canRunNow(lane) && (
        <Button kind={isSmall ? 'plain' : 'solid'} icon="s-run" small={isSmall} onClick={acts.runNow}>
          Run now
        </Button>
      )}
      {isRunning && (
        <Button icon="s-off" small={isSmall} disabled={lane.run?.cancel ?? false} onClick={acts.cancel}>
          Cancel the run
        </Button>
      )}
      {isHeld ? (
        <Button icon="s-run" small={isSmall} onClick={acts.unhold}>
          End the hold
        </Button>
      ) : (
        <Button icon="s-held" small={isSmall} onClick={acts.hold}>
          Hold…
        </Button>
      )}
      {!isSmall && lane.waiting > 0 && lane.run === undefined && (
        <Button kind="danger" onClick={acts.drop}>
          Drop {lane.waiting}…
        </Button>
      )}
    </>
  )
}

const LENGTHS = [
  { value: '', text: 'until somebody ends it' },
  { value: '10m', text: 'for 10 minutes' },
  { value: '1h', text: 'for 1 hour' },
  { value: '8h', text: 'for 8 hours' },
  { value: '24h', text: 'for 24 hours' },
] as const

function HoldDialog(props: {
  name: string
  onClose: () => void
  onHold: (reason: string, length: string) => void
}): JSX.Element {
  const { name, onClose, onHold } = props
  const [reason, setReason] = useState('')
  const [length, setLength] = useState('')
  return (
    <Dialog title={`Hold ${name}`} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          onHold(reason.trim(), length)
        }}
      >
        <p class="soft">No run of this lane starts while it is held. Events still arrive, and a live run finishes.</p>
        <label>
          Reason
          <input
            type="text"
            value={reason}
            autofocus
            maxLength={200}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <label>
          How long
          <select value={length} onChange={(event) => setLength(event.currentTarget.value)}>
            {LENGTHS.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <div class="btns end">
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind="solid" disabled={reason.trim() === ''}>
            Hold the lane
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
