// Why they died: dead letters in groups of the same reason, with the hours in which they died.
import type { JSX } from 'preact'
import { Icon } from '../../components/icon.tsx'
import { Panel } from '../../components/basics.tsx'
import { second } from '../../lib/clock.ts'
import { count, plural, visible, when } from '../../lib/format.ts'
import type { DeadReasons } from '../../lib/types.ts'
import { withQuery } from '../../state/router.ts'

type Group = DeadReasons['groups'][number]

const SHOWN = 8
const HEIGHT = 20

export function Reasons(props: {
  reasons: DeadReasons
  flow: string
  reason: string
  isAll: boolean
}): JSX.Element | null {
  const { reasons, flow, reason, isAll } = props
  if (reasons.groups.length === 0) return null
  const shown = isAll ? reasons.groups : reasons.groups.slice(0, SHOWN)
  const now = second.value
  return (
    <Panel
      title="Why they died"
      remark={`${plural(reasons.groups.length, 'reason')}${reasons.exact ? '' : ', of the newest'}`}
    >
      <table class="tight fixed reason-table" aria-label="Reasons">
        <thead class="unseen-head">
          <tr>
            <th scope="col">Reason</th>
            <th scope="col" class="wide-only">
              Flow
            </th>
            <th scope="col" class="wide-only">
              Last 24 hours
            </th>
            <th scope="col" class="num">
              Count
            </th>
            <th scope="col" class="num wide-only">
              Last
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((group) => {
            const isChosen = group.flow === flow && patternOf(group) === reason
            return (
              <tr key={`${group.flow} ${group.reason}`} class={isChosen ? 'chosen' : ''}>
                <td class="cut">
                  <a
                    href={withQuery({
                      flow: isChosen ? undefined : group.flow,
                      reason: isChosen ? undefined : patternOf(group),
                      key: undefined,
                      id: undefined,
                      ask: undefined,
                    })}
                    aria-current={isChosen ? 'true' : undefined}
                  >
                    <b class="reason">{visible(group.reason)}</b>
                  </a>
                  <span class="narrow-only sub">{visible(group.flow)}</span>
                </td>
                <td class="soft cut wide-only">{visible(group.flow)}</td>
                <td class="wide-only">
                  <Hours group={group} />
                </td>
                <td class="num">
                  {group.blocking > 0 && (
                    <span title={`${plural(group.blocking, 'lane')} blocked`}>
                      <Icon name="s-blocked" size={12} tone="fail" />{' '}
                    </span>
                  )}
                  <b>{count(group.count)}</b>
                </td>
                <td class="num dim wide-only">{when(group.last, now)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {reasons.groups.length > shown.length && (
        <footer>
          <a class="link" href={withQuery({ all: 'reasons' })}>
            Show {plural(reasons.groups.length - shown.length, 'more reason')}
          </a>
        </footer>
      )}
    </Panel>
  )
}

function patternOf(group: Group): string {
  return group.pattern ?? group.reason
}

/** One bar for each of the last 24 hours. */
function Hours({ group }: { group: Group }): JSX.Element {
  const most = Math.max(1, ...group.hours)
  const width = 100 / group.hours.length
  const recent = group.hours.reduce((sum, value) => sum + value, 0)
  const lastHour = group.hours.at(-1) ?? 0
  return (
    <svg
      class="pic"
      width="100%"
      height={HEIGHT}
      role="img"
      aria-label={`${count(recent)} in the last 24 hours, ${count(lastHour)} in the last hour`}
    >
      {group.hours.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(3, (value / most) * (HEIGHT - 3))
        return (
          <rect
            key={index}
            class={value === 0 ? 'u-none' : 'u-fail'}
            x={`${index * width}%`}
            width={`${width * 0.7}%`}
            y={HEIGHT - 1 - height}
            height={height}
          />
        )
      })}
    </svg>
  )
}
