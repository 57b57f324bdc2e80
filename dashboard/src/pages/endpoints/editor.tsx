// Editors of the filter and of the transformation of an endpoint. The transformation is tried live on a stored event.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Bones, Button, Code, Failure, Note, Panel, Select } from '../../components/basics.tsx'
import { CodeArea } from '../../components/code-area.tsx'
import { address, ApiError, patch, post, remove, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { duration, visible, when } from '../../lib/format.ts'
import type { Endpoint, EventItem, Page, Transform, TransformTest } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { act } from '../../state/toast.ts'
import { globsOf } from './create.tsx'

interface EditorProps {
  endpoint: Endpoint
  onClose: () => void
  onChanged: () => void
}

const PAUSE = 800
const EXAMPLE = `export default (events) =>
  events.map((event) => ({ ...event, data: event.data }))
`

export function FilterEditor({ endpoint, onClose, onChanged }: EditorProps): JSX.Element {
  const [globs, setGlobs] = useState(endpoint.eventFilter.join('\n'))
  const [where, setWhere] = useState(endpoint.where === null ? '' : JSON.stringify(endpoint.where, undefined, 2))
  const [rate, setRate] = useState(endpoint.rate === null ? '' : String(endpoint.rate.rate))
  const [per, setPer] = useState(endpoint.rate?.per ?? '1s')
  const [error, setError] = useState<ApiError>()
  const parsed = parsedJson(where)
  const save = async (): Promise<void> => {
    setError(undefined)
    try {
      await patch(`webhooks/subscribers/${segment(endpoint.id)}`, {
        eventFilter: globsOf(globs),
        where: parsed.value,
        rate: rate.trim() === '' ? null : { rate: Number(rate), per },
      })
      onChanged()
      onClose()
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    }
  }
  return (
    <Panel title="What it takes" remark="applies to events that are stored from now on">
      <form
        class="form pad"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        {error !== undefined && <Failure error={error} />}
        <div class="labelled">
          Event types, one glob a line; empty: everything published
          <CodeArea label="Event types" value={globs} rows={4} onChange={setGlobs} />
        </div>
        <div class="labelled">
          Content, as JSON, e.g. {'{ "data.total": { "gte": 100 } }'}; empty: any
          <CodeArea
            label="Content filter"
            value={where}
            rows={6}
            onChange={setWhere}
            {...(parsed.error !== undefined && { error: parsed.error })}
          />
        </div>
        <div class="form-cols">
          <label>
            At most this many POSTs; empty: no limit
            <input type="number" min="1" value={rate} onInput={(event) => setRate(event.currentTarget.value)} />
          </label>
          <label>
            in any
            <input type="text" value={per} onInput={(event) => setPer(event.currentTarget.value)} />
          </label>
        </div>
        <div class="btns">
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind="solid" disabled={parsed.error !== undefined}>
            Save the filter
          </Button>
        </div>
      </form>
    </Panel>
  )
}

function parsedJson(text: string): { readonly value: unknown; readonly error?: string } {
  if (text.trim() === '') return { value: null }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { value: undefined, error: error instanceof Error ? error.message : String(error) }
  }
}

export function TransformEditor({ endpoint, onClose, onChanged }: EditorProps): JSX.Element {
  const path = `webhooks/subscribers/${segment(endpoint.id)}/transform`
  const { data, error, refresh } = useResource<Transform>(`v1/${path}`)
  const [draft, setDraft] = useState<string>()
  const [event, setEvent] = useState('')
  const code = draft ?? data?.current?.code ?? EXAMPLE
  const tried = useTry(path, data === undefined ? undefined : code, event)
  const events = useResource<Page<EventItem>>(
    address('events', { limit: 20, ...(endpoint.tenant !== '' && { tenant: endpoint.tenant }) }),
  )
  const save = async (body: unknown, done: string): Promise<void> => {
    if (!(await act(() => post(path, body), done))) return
    setDraft(undefined)
    refresh()
    onChanged()
  }
  const drop = async (): Promise<void> => {
    if (!(await act(() => remove(path), 'The transformation was removed. Its versions stay.'))) return
    refresh()
    onChanged()
  }
  if (data === undefined) return error === undefined ? <Bones rows={8} /> : <Failure error={error} onRetry={refresh} />
  const isChanged = draft !== undefined && draft !== data.current?.code
  const line = tried.result?.line
  return (
    <div class="cols half editor">
      <Panel
        title="Transformation"
        remark={data.current === undefined ? 'none is used' : `version ${data.current.version} is used`}
        controls={
          data.versions.length > 0 && (
            <Select
              label="Version"
              value=""
              options={[
                { value: '', text: 'choose…' },
                ...data.versions.map(({ version, at, by }) => ({
                  value: String(version),
                  text: `${version}: ${when(at, second.value)}${by === '' ? '' : `, ${visible(by)}`}`,
                })),
              ]}
              onChange={(value) =>
                setDraft(data.versions.find(({ version }) => String(version) === value)?.code ?? draft)
              }
            />
          )
        }
      >
        <div class="pad stack">
          <CodeArea
            label="Code of the transformation"
            value={code}
            rows={18}
            onChange={setDraft}
            {...(line !== undefined && { badLine: line })}
          />
          <p class="small dim">
            An ES module. Its default export takes the events of a message and returns those to send; nothing skips
            them.
          </p>
        </div>
        <footer class="row">
          <Button kind="bare" onClick={onClose}>
            Close
          </Button>
          <span class="push row">
            {data.current !== undefined && (
              <Button kind="danger" onClick={() => void drop()}>
                Remove
              </Button>
            )}
            <Button
              kind="solid"
              disabled={!isChanged && data.current !== undefined}
              onClick={() => void save({ code }, 'The transformation is used from the next attempt on.')}
            >
              Save as a new version
            </Button>
          </span>
        </footer>
      </Panel>
      <Panel
        title="Live try"
        remark="nothing is posted"
        controls={
          <Select
            label="Event"
            value={event}
            options={[
              { value: '', text: 'a test event' },
              ...(events.data?.items ?? []).map(({ id, type, arrived }) => ({
                value: id,
                text: `${visible(type)}, ${when(arrived, second.value)}`,
              })),
            ]}
            onChange={setEvent}
          />
        }
      >
        <div class="pad stack" role="status" aria-busy={tried.isBusy ? 'true' : 'false'}>
          <TryView tried={tried} />
        </div>
      </Panel>
    </div>
  )
}

interface Tried {
  readonly result?: TransformTest
  readonly error?: ApiError
  readonly isBusy: boolean
}

/** Tries the code once the writer pauses. */
function useTry(path: string, code: string | undefined, event: string): Tried {
  const [tried, setTried] = useState<Tried>({ isBusy: true })
  useEffect(() => {
    if (code === undefined) return undefined
    let isOver = false
    const run = async (): Promise<void> => {
      setTried((before) => ({ ...before, isBusy: true }))
      try {
        const result = await post<TransformTest>(`${path}/test`, { code, ...(event !== '' && { event }) })
        if (!isOver) setTried({ result, isBusy: false })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (!isOver) setTried({ error, isBusy: false })
      }
    }
    const timer = setTimeout(() => void run(), PAUSE)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [path, code, event])
  return tried
}

function TryView({ tried: { result, error, isBusy } }: { tried: Tried }): JSX.Element {
  if (error !== undefined) return <Failure error={error} />
  if (result === undefined) return isBusy ? <Bones rows={5} /> : <p class="dim">Nothing was tried yet.</p>
  return (
    <>
      {result.error === '' ? (
        <Note tone={result.body === undefined ? 'still' : 'run'} icon={result.body === undefined ? 's-off' : 's-up'}>
          <b>{result.body === undefined ? 'It skips the event: nothing would be posted.' : 'It works.'}</b> It took{' '}
          {duration(result.ms)}.
        </Note>
      ) : (
        <Note tone="fail" icon="s-dead">
          <b>{result.line === undefined ? 'It failed.' : `It failed at line ${result.line}.`}</b>{' '}
          {visible(result.error)}
        </Note>
      )}
      {result.body !== undefined && (
        <div>
          <h3 class="small dim">
            What would be posted{result.contentType === undefined ? '' : `, ${result.contentType}`}
          </h3>
          <Code text={pretty(result.body)} label="the body" wrap />
        </div>
      )}
      {result.console.length > 0 && (
        <div>
          <h3 class="small dim">Console</h3>
          <Code text={result.console.join('\n')} label="the console" wrap />
        </div>
      )}
      <details>
        <summary class="small dim">What the function gets</summary>
        <Code text={JSON.stringify(result.input, undefined, 2)} label="the input" wrap />
      </details>
    </>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}
