// Before the first event: a request that can be copied, the steps that follow it, and how to read a lane.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Code, Panel } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { post, segment } from '../../lib/api.ts'
import { visible } from '../../lib/format.ts'
import type { Sample, Source } from '../../lib/types.ts'
import { session } from '../../state/session.ts'
import { status } from '../../state/status.ts'
import { listen } from '../../state/stream.ts'
import { HowToRead } from './how-to-read.tsx'

type Reached = 'nothing' | 'stored' | 'claimed' | 'settled'
const ORDER: readonly Reached[] = ['nothing', 'stored', 'claimed', 'settled']

/** How far the first event has come, and its id. */
function useFirstEvent(): { reached: Reached; event: string | undefined } {
  const [reached, setReached] = useState<Reached>('nothing')
  const [event, setEvent] = useState<string>()
  const reach = (next: Reached): void =>
    setReached((before) => (ORDER.indexOf(next) > ORDER.indexOf(before) ? next : before))
  useEffect(
    () =>
      listen((changes) => {
        for (const change of changes) {
          if (change.kind === 'event') {
            setEvent((before) => before ?? change.id)
            reach('stored')
          } else if (change.kind === 'claimed') reach('claimed')
          else if (change.kind === 'settled') reach('settled')
        }
      }),
    [],
  )
  const isStored = status.value?.lastEvent !== undefined
  return { reached: reached === 'nothing' && isStored ? 'stored' : reached, event }
}

/** Signing is an act: only an operator may ask for it, and the page asks once. */
function useSample(source: Source | undefined): Sample | undefined {
  const [sample, setSample] = useState<Sample>()
  const name = session.value?.role === 'operate' ? source?.name : undefined
  useEffect(() => {
    if (name === undefined) return
    post<Sample>(`sources/${segment(name)}/sample`, { origin: location.origin }).then(setSample, () => {
      // The scheme sends its secret, so the page shows the command that signs.
    })
  }, [name])
  return sample
}

export function FirstRun({ sources }: { sources: readonly Source[] }): JSX.Element {
  const { reached, event } = useFirstEvent()
  const source = sources[0]
  const sample = useSample(source)
  const flow = status.value?.flows.find(({ declared }) => declared !== false)
  const command = sample?.curl ?? fallback(source)
  const step = ORDER.indexOf(reached)
  return (
    <>
      <section class="panel first" aria-label="First event">
        <div class="hello">
          <h2 aria-live="polite">{step === 0 ? 'Nothing has arrived yet.' : 'The first event is here.'}</h2>
          <p>
            {step === 0
              ? 'Sluice is running and listens. Send a first event; it appears here as soon as it is stored.'
              : 'Sluice stored it before it answered your request.'}
          </p>
          <Code text={command} label="the command" />
          <p class="small dim">
            {sample === undefined || source === undefined ? (
              'Run it where Sluice runs.'
            ) : (
              <>
                The request is signed for the source <b>{visible(source.name)}</b> and is valid for 5 minutes.{' '}
                <code>sluice send {visible(source.name)}</code> signs a fresh one.
              </>
            )}
          </p>
          {step > 0 && (
            <p class="row">
              {event !== undefined && (
                <a class="btn solid" href={`events/${segment(event)}`}>
                  Open the event
                </a>
              )}
              <a class="btn" href="lanes">
                Watch the lanes
              </a>
            </p>
          )}
        </div>
        <ol class="await">
          <Awaited
            isDone={step >= 1}
            isNext={step === 0}
            title={step === 0 ? 'Waiting for the first event' : 'It arrived'}
          >
            {source === undefined ? (
              'from publish()'
            ) : (
              <>
                on <code>{source.path}</code>
              </>
            )}
          </Awaited>
          <Awaited isDone={step >= 1} isNext={false} title="It is verified and stored">
            before your request is answered with 202
          </Awaited>
          <Awaited isDone={step >= 2} isNext={step === 1} title="It waits in its lane">
            {flow === undefined
              ? 'no flow is declared yet'
              : `${visible(flow.flow)}${flow.window === undefined ? '' : `, ${flow.window}`}`}
          </Awaited>
          <Awaited isDone={step >= 3} isNext={step === 2} title="It runs once">
            with everything that arrived meanwhile
          </Awaited>
        </ol>
      </section>
      <Panel title="How to read a lane" remark="Everything moves left. What meets the now line happens.">
        <HowToRead />
      </Panel>
      <div class="cols third">
        <Next icon="sources" title="Receive from a provider" code="app.source('github', github({ secret }))">
          GitHub, Stripe, Slack, Shopify and twelve more.
        </Next>
        <Next icon="endpoints" title="Deliver to subscribers" code="app.delivery('news', { on: 'news.*' })">
          Signed batches, in order, retried for 75 h.
        </Next>
        <Next icon="keys" title="Create a key" code="sluice keys create ada --role=operate">
          Until then, only this machine has access.
        </Next>
      </div>
    </>
  )
}

function fallback(source: Source | undefined): string {
  return source === undefined ? `sluice publish task.edited '{"assignee":"ada"}'` : `sluice send ${source.name}`
}

function Awaited(props: {
  isDone: boolean
  isNext: boolean
  title: string
  children: JSX.Element | string
}): JSX.Element {
  const { isDone, isNext, title, children } = props
  return (
    <li class={isNext ? 'current' : isDone ? 'done' : ''}>
      <Icon
        name={isDone ? 's-up' : isNext ? 's-pending' : 's-idle'}
        tone={isDone ? 'run' : isNext ? 'wait' : 'still'}
      />
      <div>
        <b>{title}</b>
        <p>{children}</p>
      </div>
    </li>
  )
}

function Next(props: {
  icon: 'sources' | 'endpoints' | 'keys'
  title: string
  code: string
  children: string
}): JSX.Element {
  return (
    <section class="panel pad next-step">
      <Icon name={props.icon} />
      <div>
        <h2>{props.title}</h2>
        <p class="small dim">{props.children}</p>
        <code>{props.code}</code>
      </div>
    </section>
  )
}
