// A question before an act that loses something. The button says what it does.
import type { ComponentChildren, JSX } from 'preact'
import { Button } from './basics.tsx'
import { Dialog } from './dialog.tsx'

export function Confirm(props: {
  title: string
  act: string
  onAct: () => void
  onClose: () => void
  isDanger?: boolean
  children: ComponentChildren
}): JSX.Element {
  const { title, act, onAct, onClose, isDanger = true, children } = props
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="soft">{children}</div>
      <div class="btns end">
        <Button kind="bare" onClick={onClose}>
          Cancel
        </Button>
        <Button kind={isDanger ? 'danger' : 'solid'} onClick={onAct}>
          {act}
        </Button>
      </div>
    </Dialog>
  )
}
