// How far a refused request came: the checks as gates in a row. The one that stayed closed says why.
import type { JSX } from 'preact'
import { Facts, Mono, Note } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { second } from '../../lib/clock.ts'
import { bytes, duration, visible, when } from '../../lib/format.ts'
import type { RefusedRequest } from '../../lib/types.ts'

type Check = NonNullable<RefusedRequest['checks']>[number]

const FLOOR = 64
const WORDS: Readonly<Record<string, string>> = {
  path: 'Path',
  size: 'Size',
  header: 'Header',
  signature: 'Signature',
  time: 'Time',
  read: 'Read',
  stored: 'Stored',
}

const STATES: Readonly<Record<Check['state'], string>> = { passed: 'passed', failed: 'failed', skipped: 'not reached' }

export function Autopsy({ request }: { request: RefusedRequest }): JSX.Element {
  const { checks, code, at, address, what, fix, autopsy } = request
  return (
    <div class="autopsy">
      <h3 class="row wrap">
        How far it came <span class="tag">{visible(code)}</span>
        <span class="push dim small">
          {when(at, second.value)}, from {visible(address)}, <span class="mono">{visible(request.request)}</span>
        </span>
      </h3>
      {checks !== undefined && checks.length > 0 && <Gates checks={checks} what={what} />}
      <Note tone="ready" icon="s-warn">
        <b>{visible(what)}</b> {visible(fix)}
      </Note>
      {autopsy !== undefined && (
        <Facts
          items={[
            autopsy.header === undefined ? undefined : ['Header', <Mono>{visible(autopsy.header)}</Mono>],
            autopsy.given === undefined ? undefined : ['It says', <Mono>{visible(autopsy.given)}</Mono>],
            autopsy.signedParts === undefined
              ? undefined
              : ['Signed are', <Mono>{visible(autopsy.signedParts.join(' + '))}</Mono>],
            autopsy.signedBytes === undefined ? undefined : ['in all', bytes(autopsy.signedBytes)],
            autopsy.skewMs === undefined ? undefined : ['Signed', skewText(autopsy.skewMs)],
            ['Secrets tried', String(autopsy.secretsTried)],
          ]}
        />
      )}
    </div>
  )
}

function skewText(ms: number): string {
  return ms < 0 ? `${duration(-ms)} in the future` : `${duration(ms)} before it arrived`
}

/** Water flows through the gates that are open, up to the one that stayed closed. */
function Gates({ checks, what }: { checks: readonly Check[]; what: string }): JSX.Element {
  const failed = checks.findIndex(({ state }) => state === 'failed')
  const width = 100 / checks.length
  const label = checks.map(({ step, state, text }) => `${WORDS[step] ?? step}: ${state}, ${text}`).join('. ')
  const end = failed === -1 ? 100 : (failed + 0.5) * width
  return (
    <>
      <svg class="pic gates wide-only" width="100%" height={FLOOR + 8} role="img" aria-label={visible(label)}>
        <rect class="gate-water" x="0" width={`${end}%`} y={FLOOR - 30} height="30" />
        <rect class="u-wait" x="0" width={`${end}%`} y={FLOOR - 31} height="1.75" />
        <line class="bed" x1="0" x2="100%" y1={FLOOR + 0.5} y2={FLOOR + 0.5} />
        {checks.map(({ step, state }, index) => {
          const isOpen = state === 'passed'
          const isClosed = state === 'failed'
          const tone = isOpen ? 'u-run' : isClosed ? 'u-fail' : 'u-none'
          const [top, bottom] = isClosed ? [6, FLOOR] : [2, 28]
          return (
            <svg key={step} x={`${(index + 0.5) * width}%`} y="0" width="1" height="1" overflow="visible">
              <rect class={tone} x="-3" y={top} width="6" height={bottom - top} rx="2" />
              <rect class={tone} x="-14" y={top} width="28" height="5" rx="2" />
            </svg>
          )
        })}
      </svg>
      <ol class="gate-words">
        {checks.map(({ step, state, text }) => (
          <li key={step} class={state}>
            <b>
              <Icon
                name={state === 'passed' ? 'check' : state === 'failed' ? 's-dead' : 's-idle'}
                size={12}
                tone={state === 'passed' ? 'run' : state === 'failed' ? 'fail' : 'still'}
              />{' '}
              {WORDS[step] ?? visible(step)}
            </b>
            <span>{text === '' || text === what ? STATES[state] : visible(text)}</span>
          </li>
        ))}
      </ol>
    </>
  )
}
