// Retries a dead letter with other data: a new event for the same flow, which names the one it replaces.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Note } from '../../components/basics.tsx'
import { CodeArea } from '../../components/code-area.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { post, segment } from '../../lib/api.ts'
import { visible } from '../../lib/format.ts'
import type { DeadLetter } from '../../lib/types.ts'
import { say, sayFailed } from '../../state/toast.ts'

type Content = NonNullable<DeadLetter['contents']>[number]

/** The attribute of the new event that names the event it replaces. */
const REPLACES = 'replaces'

/** `canEdit` returns whether the letter has one event with data. An edit of several would be several events. */
export function canEdit({ kind, contents = [], events }: DeadLetter): boolean {
  return kind === 'run' && events.length === 1 && contents[0] !== undefined && contents[0].data !== undefined
}

export function RetryEdited(props: { letter: DeadLetter; onClose: () => void; onDone: () => void }): JSX.Element {
  const { letter, onClose, onDone } = props
  const event = letter.contents?.[0]
  const [text, setText] = useState(() => JSON.stringify(event?.data, null, 2))
  const [isBusy, setBusy] = useState(false)
  const fault = faultOf(text)
  const send = async (): Promise<void> => {
    if (event === undefined) return
    setBusy(true)
    try {
      await post(`events?to=${encodeURIComponent(letter.flow)}`, editedEvent(event, text, letter.id))
      await post(`dead-letters/${segment(letter.id)}/drop`)
      say('The edited event runs in its lane, and the dead letter is dropped.')
      onDone()
    } catch (error) {
      setBusy(false)
      sayFailed(error)
    }
  }
  return (
    <Dialog title="Retry with other data" onClose={onClose} wide>
      <CodeArea
        label="Data of the event"
        rows={12}
        value={text}
        onChange={setText}
        {...(fault !== '' && { error: fault })}
      />
      <Note tone="still" icon="s-pending">
        The stored event <b>{visible(event?.type ?? '')}</b> stays as it is. A new one with this data, and the attribute{' '}
        <code>{REPLACES}</code>, goes to {visible(letter.flow)} alone; its key decides the lane. The dead letter is
        dropped.
      </Note>
      <div class="btns end">
        <Button kind="bare" onClick={onClose}>
          Cancel
        </Button>
        <Button kind="solid" disabled={isBusy || fault !== ''} onClick={() => void send()}>
          Publish 1 event, drop 1 dead letter
        </Button>
      </div>
    </Dialog>
  )
}

function faultOf(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return `The data must be JSON: ${(error as Error).message}.`
  }
}

/** The id comes from the dead letter, so that a repeated click publishes one event. */
function editedEvent({ id, type, subject, tenant }: Content, text: string, letter: string): unknown {
  return {
    id: `${letter}-edited`,
    type,
    data: JSON.parse(text) as unknown,
    ...(subject !== undefined && subject !== '' && { subject }),
    ...(tenant !== undefined && tenant !== '' && { tenant }),
    attributes: { [REPLACES]: id },
  }
}
