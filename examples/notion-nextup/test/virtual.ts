// NextUp and the stand-in for Notion in one process, on a clock of the test's own: minutes of debouncing pass in a moment.
import type { EventMap, EventName, Millis, SluiceOptions } from 'sluice'
import { testApp, VirtualClock, type TestApp, type TestRun } from 'sluice/testing'
import { nextUp } from '../nextup.ts'
import { NotionStandIn, type StandInOptions } from '../stand-in/notion.ts'
import type { StoredPage, TaskInput, User } from '../stand-in/page.ts'
import { standInSettings } from '../stand-in/settings.ts'
import { actionWebhook, integrationWebhook, type Webhook } from '../stand-in/webhooks.ts'

/** A Monday, nine o'clock. */
export const START = Date.UTC(2026, 0, 5, 9)
const ADDRESS = 'https://notion.stand-in'

export interface VirtualOptions {
  /** The start; default a Monday at nine, in UTC. */
  readonly start?: Millis
  readonly env?: Readonly<Record<string, string>>
  readonly store?: string
  readonly app?: Omit<SluiceOptions, 'store'>
  readonly standIn?: Omit<StandInOptions, 'clock'>
}

export interface Virtual {
  readonly t: TestApp
  readonly notion: NotionStandIn
  /** Runs of `rank-user` alone. */
  readonly ranked: readonly TestRun[]
  advance(by: Millis): Promise<void>
  /** Sends a webhook, and answers its status. */
  send(webhook: Webhook): Promise<number>
  /** Somebody edits a task, and the automation sends its webhook. */
  edit(page: StoredPage, task: TaskInput, by: User): Promise<void>
  told<N extends EventName>(name: N): readonly EventMap[N][]
  stop(): Promise<void>
}

export async function virtual(options: VirtualOptions = {}): Promise<Virtual> {
  const clock = new VirtualClock(options.start ?? START)
  const notion = new NotionStandIn({ clock, ...options.standIn })
  const settings = { ...standInSettings(ADDRESS, options.env), now: () => clock.now() }
  const app = nextUp(settings, { log: false, addressRate: { rate: Infinity, per: '1m' }, ...options.app })
  const { store = 'memory:' } = options
  const t = await testApp(app, { clock, store, fetch: notion.fetch })
  const send = async ({ path, headers, body }: Webhook): Promise<number> => {
    const { status } = await app.fetch(new Request(`http://nextup${path}`, { method: 'POST', headers, body }))
    await t.settled()
    return status
  }
  return {
    t,
    notion,
    get ranked() {
      return t.runs.filter(({ flow }) => flow === 'rank-user')
    },
    advance: (by) => t.advance(by),
    send,
    async edit(page, task, by) {
      notion.edit(page.id, task, by)
      const status = await send(actionWebhook(page))
      if (status !== 200) throw new Error(`The app answered ${status} to a webhook.`)
    },
    told: <N extends EventName>(name: N) =>
      t.emitted.flatMap((one) => (one.name === name ? [one.payload as EventMap[N]] : [])),
    stop: () => t.stop(),
  }
}

/** Notion tells the integration of every change, its own included. */
export function tellIntegration(v: Virtual): void {
  v.notion.onChange((change) => void v.send(integrationWebhook(change)))
}

export function person(name: string): User {
  return { id: `user-${name}`, name }
}

/** The values in Notion: rank and projected day of a page. */
export function rankOf(page: StoredPage): readonly [unknown, unknown] {
  const projected = page.values.get('Projected Completion') as { start: string } | null | undefined
  return [page.values.get('Queue Rank') ?? null, projected?.start ?? null]
}
