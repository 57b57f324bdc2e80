// `SecretOnce` shows a secret that the server returns only once, with a button that copies it.
import type { ComponentChildren, JSX } from 'preact'
import { Button, Code, Note } from './basics.tsx'
import { Dialog } from './dialog.tsx'

export function SecretOnce(props: {
  title: string
  secret: string
  /** The server keeps it in the clear for operators, so it can be shown again. */
  isKept?: boolean
  onClose: () => void
  children?: ComponentChildren
}): JSX.Element {
  const { title, secret, isKept = false, onClose, children } = props
  return (
    <Dialog title={title} onClose={onClose}>
      <Code text={secret} label="the secret" wrap />
      {!isKept && (
        <Note tone="ready" icon="s-warn">
          <b>This is the only time it is shown.</b> Copy it now. If it is lost, create a new one.
        </Note>
      )}
      {children}
      <div class="btns end">
        <Button kind="solid" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
