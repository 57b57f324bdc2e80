// Sends an endpoint stored events again, behind its live ones.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Failure } from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ApiError, post, segment } from '../../lib/api.ts'
import { plural } from '../../lib/format.ts'
import type { Endpoint } from '../../lib/types.ts'
import { go } from '../../state/router.ts'
import { say } from '../../state/toast.ts'
import { nameOf } from './endpoints.tsx'

/** What all fields of a form have in common. */
interface Typed {
  readonly currentTarget: { readonly value: string }
}

export function ReplayToEndpoint({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }): JSX.Element {
  const [fields, setFields] = useState({ from: '', to: '', type: '', rate: '100' })
  const [error, setError] = useState<ApiError>()
  const set = (name: keyof typeof fields) => (event: Typed) =>
    setFields((before) => ({ ...before, [name]: event.currentTarget.value }))
  const start = async (): Promise<void> => {
    const { from, to, type, rate } = fields
    try {
      const path = `webhooks/subscribers/${segment(endpoint.id)}/replay`
      const result = await post<{ count: number; replay?: string }>(path, {
        from: from === '' ? 'beginning' : new Date(from).getTime(),
        ...(to !== '' && { to: new Date(to).getTime() }),
        ...(type.trim() !== '' && { type: type.trim() }),
        rate: Number(rate),
      })
      say(`The replay reads ${plural(result.count, 'event')}.`)
      if (result.replay === undefined) onClose()
      else go(`replays/${segment(result.replay)}`)
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    }
  }
  return (
    <Dialog title={`Replay stored events to ${nameOf(endpoint)}`} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void start()
        }}
      >
        <p class="soft">
          Only this endpoint gets them, behind its live events and with their old ids. Events that its filter does not
          match are skipped.
        </p>
        {error !== undefined && <Failure error={error} />}
        <div class="form-cols">
          <label>
            Arrived from
            <input type="datetime-local" value={fields.from} onInput={set('from')} />
          </label>
          <label>
            until
            <input type="datetime-local" value={fields.to} onInput={set('to')} />
          </label>
        </div>
        <div class="form-cols">
          <label>
            Type
            <input type="text" placeholder="any" value={fields.type} onInput={set('type')} />
          </label>
          <label>
            Events a second
            <input type="number" min="1" max="1000000" required value={fields.rate} onInput={set('rate')} />
          </label>
        </div>
        <div class="btns">
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind="solid">
            Start the replay
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
