// The declared alerts with their states; what is raised stands first.
import type { JSX } from 'preact'
import { Bones, Chip, Code, Empty, Failure, Panel } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { second } from '../../lib/clock.ts'
import { plural, visible, when } from '../../lib/format.ts'
import { ALERT_LOOKS } from '../../lib/states.ts'
import type { Alert, Page } from '../../lib/types.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'

const ORDER: readonly Alert['state'][] = ['raised', 'pending', 'easing', 'clear']
const EXAMPLE = `import { alerts } from 'sluice'

app.alert('slow', { when: alerts.latency({ above: '5m' }), for: '10m' })`

export function Alerts(): JSX.Element {
  const { data, error, refresh } = useResource<Page<Alert>>('v1/alerts', { every: 5_000 })
  useLive(({ kind }) => kind === 'alert', refresh)
  const items = (data?.items ?? []).toSorted((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state))
  const raised = items.filter(({ state }) => state === 'raised').length
  return (
    <Frame
      title="Alerts"
      remark={
        data === undefined
          ? undefined
          : `${plural(items.length, 'alert')}; ${raised === 0 ? 'none is' : `${raised}`} raised`
      }
    >
      <Panel label="Alerts">
        {error !== undefined && <Failure error={error} onRetry={refresh} />}
        {data === undefined && error === undefined && <Bones rows={6} />}
        {items.length > 0 && (
          <table class="alert-table" aria-label="Alerts">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Alert</th>
                <th scope="col">What it says</th>
                <th scope="col" class="num wide-only">
                  Since
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ name, state, since, text, broken }) => (
                <tr key={name}>
                  <td>
                    <Chip look={ALERT_LOOKS[broken === undefined ? state : 'broken']} plain />
                  </td>
                  <td class="cut">
                    <b class="type">{visible(name)}</b>
                  </td>
                  <td class="soft">
                    {visible(text === '' ? '–' : text)}
                    {broken !== undefined && <span class="sub c-fail">Its condition failed: {visible(broken)}</span>}
                  </td>
                  <td class="num dim nowrap wide-only">{since === undefined ? '–' : when(since, second.value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {data !== undefined && items.length === 0 && (
          <Empty icon="alerts" title="No alert is declared.">
            An alert is a condition, how long it must hold, and whom to notify.
            <Code text={EXAMPLE} label="an example" />
          </Empty>
        )}
      </Panel>
    </Frame>
  )
}
