// The keys of the API: who may. A new secret is shown once.
import type { JSX } from 'preact'
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { Bones, Button, Chip, Empty, Failure, Panel } from '../../components/basics.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SecretOnce } from '../../components/secret-once.tsx'
import { Frame } from '../../components/shell.tsx'
import { ApiError, post, remove, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { plural, visible, when } from '../../lib/format.ts'
import type { Look } from '../../lib/states.ts'
import type { ApiKey, Page } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery } from '../../state/router.ts'
import { mayOperate, session, signIn } from '../../state/session.ts'
import { act } from '../../state/toast.ts'

const ROLES: readonly { readonly role: string; readonly text: string }[] = [
  { role: 'read', text: 'read: sees everything, changes nothing' },
  { role: 'publish', text: 'publish: publishes events' },
  { role: 'register', text: 'register: creates endpoints of its tenant' },
  { role: 'operate', text: 'operate: may do everything' },
]

const lookOf = (role: string): Look => ({ tone: 'still', icon: 's-idle', word: role })

/** The secret of the key that was just created. It outlives the page, so that a sign-in in between cannot lose it. */
const created = signal<string | undefined>(undefined)

function close(): void {
  setQuery({ new: undefined })
}

export function Keys(): JSX.Element {
  const { data, error, refresh } = useResource<Page<ApiKey>>('v1/keys', { every: 15_000 })
  const [revoking, setRevoking] = useState<ApiKey>()
  const items = data?.items ?? []
  const may = mayOperate.value
  const revoke = async (key: ApiKey): Promise<void> => {
    setRevoking(undefined)
    await act(() => remove(`keys/${segment(key.id)}`), `The key ${visible(key.name)} was revoked.`)
    refresh()
  }
  return (
    <Frame title="Keys" remark={data === undefined ? undefined : `${plural(items.length, 'key')} of the admin API`}>
      <Panel
        title="Keys"
        remark="secrets are never shown again"
        controls={
          may && (
            <Button kind="solid" icon="plus" onClick={() => setQuery({ new: '1' })}>
              Create a key
            </Button>
          )
        }
      >
        {error !== undefined && <Failure error={error} onRetry={refresh} />}
        {data === undefined && error === undefined && <Bones rows={5} />}
        {items.length > 0 && (
          <table class="key-table" aria-label="Keys">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Role</th>
                <th scope="col" class="wide-only">
                  Created
                </th>
                <th scope="col" class="wide-only">
                  By
                </th>
                {may && (
                  <th scope="col" class="num">
                    <span class="unseen">Act</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {items.map((key) => (
                <tr key={key.id}>
                  <td class="cut">
                    <b class="type">{visible(key.name)}</b>
                    <span class="sub mono cut">{key.id}</span>
                  </td>
                  <td>
                    <Chip look={lookOf(key.role)} plain />
                    {key.tenant !== undefined && key.tenant !== '' && (
                      <span class="sub cut">{visible(key.tenant)}</span>
                    )}
                  </td>
                  <td class="soft nowrap wide-only">{when(key.created, second.value)}</td>
                  <td class="soft cut wide-only">{visible(key.by === '' ? '–' : key.by)}</td>
                  {may && (
                    <td class="num">
                      <Button
                        small
                        kind="danger"
                        label={`Revoke the key ${visible(key.name)}`}
                        onClick={() => setRevoking(key)}
                      >
                        Revoke…
                      </Button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {data !== undefined && items.length === 0 && (
          <Empty icon="keys" title="There is no key.">
            Without a key, only the loopback address can use the API, if the app allows it.
          </Empty>
        )}
      </Panel>
      {may && place.value.query['new'] !== undefined && <CreateKey onCreated={refresh} />}
      {created.value !== undefined && (
        <SecretOnce title="The new key" secret={created.value} onClose={() => (created.value = undefined)} />
      )}
      {revoking !== undefined && (
        <Confirm
          title={`Revoke the key ${visible(revoking.name)}?`}
          act="Revoke the key"
          onAct={() => void revoke(revoking)}
          onClose={() => setRevoking(undefined)}
        >
          <p>Whoever uses it is refused at once, and signed out of this page.</p>
        </Confirm>
      )}
    </Frame>
  )
}

function CreateKey({ onCreated }: { onCreated: () => void }): JSX.Element {
  const [name, setName] = useState('')
  const [role, setRole] = useState('read')
  const [tenant, setTenant] = useState('')
  const [error, setError] = useState<ApiError>()
  const create = async (): Promise<void> => {
    setError(undefined)
    try {
      const body = {
        name: name.trim(),
        role,
        ...(tenant.trim() !== '' && role === 'register' && { tenant: tenant.trim() }),
      }
      const { secret } = await post<ApiKey & { readonly secret: string }>('keys', body)
      created.value = secret
      close()
      // The first key ends the access without one: the page goes on with the new key.
      if (session.value?.by === 'loopback') await signIn(secret)
      onCreated()
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    }
  }
  return (
    <Dialog title="Create a key" onClose={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        {error !== undefined && <Failure error={error} />}
        <label>
          Name
          <input
            type="text"
            autofocus
            maxLength={100}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <fieldset class="choices">
          <legend class="small dim">Role</legend>
          {ROLES.map((one) => (
            <label key={one.role} class="row">
              <input type="radio" name="role" checked={role === one.role} onChange={() => setRole(one.role)} />
              {one.text}
            </label>
          ))}
        </fieldset>
        {role === 'register' && (
          <label>
            Tenant
            <input type="text" value={tenant} onInput={(event) => setTenant(event.currentTarget.value)} />
          </label>
        )}
        <div class="btns">
          <Button kind="bare" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" kind="solid" disabled={name.trim() === ''}>
            Create the key
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
