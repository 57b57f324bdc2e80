// What an operator can do to an endpoint, with the questions that some acts ask first.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Code, Note } from '../../components/basics.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SecretOnce } from '../../components/secret-once.tsx'
import { post, remove, segment } from '../../lib/api.ts'
import { duration, plural, visible } from '../../lib/format.ts'
import { healthOf } from '../../lib/states.ts'
import type { Endpoint, TestResult } from '../../lib/types.ts'
import { go } from '../../state/router.ts'
import { act, say, sayFailed } from '../../state/toast.ts'
import { nameOf } from './endpoints.tsx'

type Asked = 'enable' | 'delete'

/** The acts at the top of the page of an endpoint. */
export function EndpointActs({ endpoint, onChanged }: { endpoint: Endpoint; onChanged: () => void }): JSX.Element {
  const [asked, setAsked] = useState<Asked>()
  const [test, setTest] = useState<TestResult | 'busy'>()
  const path = `webhooks/subscribers/${segment(endpoint.id)}`
  const health = healthOf(endpoint)
  const name = nameOf(endpoint)
  const close = (): void => setAsked(undefined)
  const perform = async (what: string, done: string, body: unknown = {}): Promise<void> => {
    close()
    await act(() => post(`${path}/${what}`, body), done)
    onChanged()
  }
  const runTest = async (): Promise<void> => {
    setTest('busy')
    try {
      setTest(await post<TestResult>(`${path}/test`))
    } catch (error) {
      setTest(undefined)
      sayFailed(error)
    }
    onChanged()
  }
  const destroy = async (): Promise<void> => {
    close()
    try {
      const { dropped } = await remove<{ dropped: number }>(path)
      say(`${name} was deleted, and ${plural(dropped, 'waiting event')} dropped.`)
      go('endpoints')
    } catch (error) {
      sayFailed(error)
    }
  }
  const waiting = plural(endpoint.waiting ?? 0, 'waiting event')
  return (
    <>
      {health === 'disabled' && (
        <Button kind="solid" icon="s-run" onClick={() => setAsked('enable')}>
          Enable…
        </Button>
      )}
      {health === 'unproven' && (
        <Button
          kind="solid"
          icon="check"
          onClick={() => void perform('prove', 'The endpoint was asked to prove itself.')}
        >
          Prove
        </Button>
      )}
      {endpoint.nextTry !== undefined && endpoint.active && health !== 'disabled' && (
        <Button kind="solid" icon="s-run" onClick={() => void perform('resume', 'The next attempt is due now.')}>
          Try now
        </Button>
      )}
      <Button icon="endpoints" disabled={test === 'busy'} onClick={() => void runTest()}>
        Send a test
      </Button>
      {health !== 'disabled' &&
        (endpoint.active ? (
          <Button icon="s-held" onClick={() => void perform('pause', `${name} is paused; its events wait.`)}>
            Pause
          </Button>
        ) : (
          <Button kind="solid" icon="s-run" onClick={() => void perform('resume', `${name} gets its ${waiting} now.`)}>
            Resume
          </Button>
        ))}
      <Button kind="danger" onClick={() => setAsked('delete')}>
        Delete…
      </Button>
      {asked === 'delete' && (
        <Confirm title={`Delete ${name}?`} act="Delete the endpoint" onAct={() => void destroy()} onClose={close}>
          <p>
            It gets no more events, and its {waiting} {endpoint.waiting === 1 ? 'is' : 'are'} dropped. Events stay
            stored, but a new endpoint has another secret.
          </p>
        </Confirm>
      )}
      {asked === 'enable' && (
        <Dialog title={`Enable ${name}`} onClose={close}>
          <p class="soft">Its {waiting} can be delivered now, oldest first, or dropped.</p>
          <div class="btns end">
            <Button kind="bare" onClick={close}>
              Cancel
            </Button>
            <Button kind="danger" onClick={() => void perform('enable', `${name} is enabled.`, { from: 'now' })}>
              Enable, drop what waits
            </Button>
            <Button kind="solid" onClick={() => void perform('enable', `${name} is enabled.`, { from: 'backlog' })}>
              Enable, deliver what waits
            </Button>
          </div>
        </Dialog>
      )}
      {typeof test === 'object' && <TestAnswer result={test} onClose={() => setTest(undefined)} />}
    </>
  )
}

function TestAnswer({ result, onClose }: { result: TestResult; onClose: () => void }): JSX.Element {
  const { delivered, ms, status, answer, error } = result
  return (
    <Dialog title="Test event" onClose={onClose}>
      <Note tone={delivered ? 'run' : 'fail'} icon={delivered ? 's-up' : 's-dead'}>
        <b>{delivered ? 'Delivered' : 'Not delivered'}</b> in {duration(ms)}
        {status !== undefined && `, with HTTP ${status}`}.{error !== '' && ` ${visible(error)}`}
      </Note>
      {answer !== undefined && answer !== '' && <Code text={answer} label="the answer" wrap />}
      <div class="btns end">
        <Button kind="solid" onClick={onClose}>
          Close
        </Button>
      </div>
    </Dialog>
  )
}

/** Replaces the secret: the old one stays valid for a day, or ends at once. */
export function RotateSecret(props: { endpoint: Endpoint; onClose: () => void; onChanged: () => void }): JSX.Element {
  const { endpoint, onClose, onChanged } = props
  const [force, setForce] = useState(false)
  const [secret, setSecret] = useState<string>()
  const rotate = async (): Promise<void> => {
    try {
      const path = `webhooks/subscribers/${segment(endpoint.id)}/rotate-secret`
      const result = await post<{ secret: string }>(path, { force })
      setSecret(result.secret)
      onChanged()
    } catch (error) {
      sayFailed(error)
    }
  }
  if (secret !== undefined) {
    return (
      <SecretOnce title="The new secret" secret={secret} onClose={onClose}>
        <p class="soft small">
          {force
            ? 'The old secret has ended: batches carry the new signature only.'
            : 'Batches carry both signatures for a day, so the receiver can change over in this time.'}
        </p>
      </SecretOnce>
    )
  }
  return (
    <Dialog title={`Rotate the secret of ${nameOf(endpoint)}`} onClose={onClose}>
      <fieldset class="choices">
        <legend class="small dim">The old secret</legend>
        <label class="row">
          <input type="radio" name="old" checked={!force} onChange={() => setForce(false)} />
          stays valid for a day
        </label>
        <label class="row">
          <input type="radio" name="old" checked={force} onChange={() => setForce(true)} />
          ends at once: the receiver rejects batches until it has the new one
        </label>
      </fieldset>
      <div class="btns end">
        <Button kind="bare" onClick={onClose}>
          Cancel
        </Button>
        <Button kind={force ? 'danger' : 'solid'} onClick={() => void rotate()}>
          Rotate the secret
        </Button>
      </div>
    </Dialog>
  )
}
