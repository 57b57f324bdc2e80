// Registers an endpoint. The secret is part of the answer, and never shown again.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Failure } from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SecretOnce } from '../../components/secret-once.tsx'
import { ApiError, post, segment } from '../../lib/api.ts'
import { go } from '../../state/router.ts'

const FORMS = ['standard', 'events', 'flat', 'cloudevents', 'slack', 'discord', 'pagerduty'] as const
const STARTS = [
  { value: '', text: 'from now on' },
  { value: 'beginning', text: 'all stored events first' },
] as const

/** `globsOf` reads one glob from each line; commas work too. */
/** What all fields of a form have in common. */
interface Typed {
  readonly currentTarget: { readonly value: string }
}

export function globsOf(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((glob) => glob.trim())
    .filter((glob) => glob !== '')
}

export function CreateEndpoint({ onClose, onCreated }: { onClose: () => void; onCreated: () => void }): JSX.Element {
  const [fields, setFields] = useState({ name: '', url: '', globs: '', form: '', from: '', tenant: '' })
  const [error, setError] = useState<ApiError>()
  const [isBusy, setBusy] = useState(false)
  const [created, setCreated] = useState<{
    readonly id: string
    readonly secret: string
    readonly proofError?: string
  }>()
  const set = (name: keyof typeof fields) => (event: Typed) =>
    setFields((before) => ({ ...before, [name]: event.currentTarget.value }))
  const create = async (): Promise<void> => {
    const { name, url, globs, form, from, tenant } = fields
    setBusy(true)
    setError(undefined)
    try {
      setCreated(
        await post('webhooks/subscribers', {
          url: url.trim(),
          eventFilter: globsOf(globs),
          ...(name.trim() !== '' && { name: name.trim() }),
          ...(form !== '' && { form }),
          ...(from !== '' && { from }),
          ...(tenant.trim() !== '' && { tenant: tenant.trim() }),
        }),
      )
      onCreated()
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    }
    setBusy(false)
  }
  if (created !== undefined) {
    return (
      <SecretOnce
        title="The secret of the new endpoint"
        secret={created.secret}
        onClose={() => go(`endpoints/${segment(created.id)}`)}
      >
        <p class="soft small">
          The receiver verifies the signature of each batch with it.
          {created.proofError !== undefined &&
            created.proofError !== '' &&
            ` It is not proven yet: ${created.proofError}`}
        </p>
      </SecretOnce>
    )
  }
  return (
    <Dialog title="Add an endpoint" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        {error !== undefined && <Failure error={error} />}
        <label>
          URL
          <input
            type="url"
            autofocus
            required
            placeholder="https://example.com/hook"
            value={fields.url}
            onInput={set('url')}
          />
        </label>
        <label>
          Name
          <input type="text" maxLength={200} value={fields.name} onInput={set('name')} />
        </label>
        <label>
          Event types, one glob a line
          <textarea rows={3} placeholder="order.*" spellcheck={false} value={fields.globs} onInput={set('globs')} />
        </label>
        <p class="small dim">
          Without a glob it gets everything that the app publishes. A glob with a slash, e.g. stripe/**, forwards what a
          source received.
        </p>
        <div class="form-cols">
          <label>
            Body
            <select value={fields.form} onChange={set('form')}>
              <option value="">default</option>
              {FORMS.map((form) => (
                <option key={form} value={form}>
                  {form}
                </option>
              ))}
            </select>
          </label>
          <label>
            Begins
            <select value={fields.from} onChange={set('from')}>
              {STARTS.map(({ value, text }) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          </label>
          <label>
            Tenant
            <input type="text" value={fields.tenant} onInput={set('tenant')} />
          </label>
        </div>
        <div class="btns">
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind="solid" disabled={isBusy || fields.url.trim() === ''}>
            Add the endpoint
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
