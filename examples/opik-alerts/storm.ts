// `storm` is the page of --serve: a button makes 1,000 errors happen, and the channel in Slack gets one card.
import type { Page } from '../kit/live-page.ts'
import type { Stage } from '../kit/stage.ts'
import { COLLECT } from './alerts.ts'
import { REAL_TIME, Workspace, type AlertInApi } from './scenarios/workspace.ts'
import type { SlackMessage } from './stand-in/receivers.ts'
import type { World } from './world.ts'

const ERRORS = 1_000
const WINDOW_MS = 4_000
const SHOWN = 50

interface Scene {
  readonly workspace: Workspace
  readonly alert: AlertInApi
}

export function storm(stage: Stage<World>): Page {
  let opened: Promise<Scene> | undefined
  let happened = 0
  const open = (): Promise<Scene> => (opened ??= openScene(stage))
  const happen = async (count: number): Promise<void> => {
    const { workspace } = await open()
    await workspace.happen('trace:errors', count)
    happened += count
  }
  return {
    folder: new URL('page/', import.meta.url),
    async state() {
      const { workspace, alert } = await open()
      const { items } = await stage.app.admin.lanes.list({ flow: COLLECT, tenant: workspace.name })
      const window = items.find(({ waiting }) => waiting > 0)
      const messages = stage.world.receivers.accepted('slack', alert.path)
      return {
        happened,
        waiting: window?.waiting ?? 0,
        endsIn: window === undefined ? null : Math.max(0, window.due - stage.clock.now()),
        isDebounced: (await workspace.show(alert.id)).debouncing.enabled,
        messages: messages.length,
        cards: messages.slice(-SHOWN).map(({ body }) => toCard(JSON.parse(body) as SlackMessage)),
      }
    },
    actions: {
      storm: () => happen(ERRORS),
      error: () => happen(1),
      debounce: async (isOn) => {
        const { workspace, alert } = await open()
        const debouncing = isOn === true ? { window_size: WINDOW_MS } : REAL_TIME
        await workspace.call('PATCH', `/alerts/${alert.id}`, { debouncing })
      },
    },
  }
}

async function openScene(stage: Stage<World>): Promise<Scene> {
  const workspace = await Workspace.open(stage)
  const fields = { name: 'Errors in production', alert_type: 'slack', debouncing: { window_size: WINDOW_MS } }
  return { workspace, alert: await workspace.alert(fields) }
}

/** What Slack shows: the first line is the title. */
function toCard({ blocks }: SlackMessage): { readonly title: string; readonly lines: readonly string[] } {
  const text = blocks.map((block) => block.text?.text ?? '').join('\n')
  const [title = '', ...lines] = text.replaceAll(/[*`]/g, '').split('\n').map(unescape)
  return { title, lines }
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
