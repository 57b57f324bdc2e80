// `NextUpStage` adds what NextUp's scenarios need to the stage of the kit: people who edit, and who was served when.
import type { EventMap, EventName, Millis } from 'sluice'
import type { Tell } from '../../kit/example.ts'
import type { Lag } from '../../kit/lag.ts'
import type { Stage } from '../../kit/stage.ts'
import { globalFigures } from '../figures.ts'
import type { Settings } from '../settings.ts'
import type { NotionStandIn } from '../stand-in/notion.ts'
import type { StoredPage, TaskInput, User } from '../stand-in/page.ts'
import { standInSettings } from '../stand-in/settings.ts'
import { actionWebhook, integrationWebhook, type Webhook } from '../stand-in/webhooks.ts'
import { unranked, type Turn } from './judge.ts'

const FLOWS = ['rank-user', 'read-page'] as const

export interface World {
  readonly notion: NotionStandIn
  readonly lag: Lag
  /** Of all processes of the app: each counts from its own start. */
  readonly figures: Map<string, number>
  /** Whether Notion also tells the integration, of every change. */
  tellsIntegration: boolean
}

const stages = new WeakMap<Stage<World>, NextUpStage>()

/** The same for the same stage. */
export function nextUpStage(stage: Stage<World>): NextUpStage {
  const known = stages.get(stage) ?? new NextUpStage(stage)
  stages.set(stage, known)
  return known
}

export class NextUpStage {
  readonly world: World
  readonly #stage: Stage<World>
  readonly #settings: Settings = standInSettings('')
  readonly #sending = new Set<Promise<unknown>>()

  constructor(stage: Stage<World>) {
    this.#stage = stage
    this.world = stage.world
    this.notion.onChange((change) => {
      if (this.world.tellsIntegration) this.#send(() => this.#deliver(integrationWebhook(change)))
    })
  }

  get app(): Stage<World>['app'] {
    return this.#stage.app
  }

  get notion(): NotionStandIn {
    return this.world.notion
  }

  get tell(): Tell {
    return this.#stage.tell
  }

  /** Of `rank-user`, in the order in which they began. */
  get turns(): readonly Turn[] {
    return turnsIn((name) => this.#stage.emitted(name))
  }

  sleep(ms: Millis): Promise<void> {
    return this.#stage.sleep(ms)
  }

  /** Somebody edits in Notion, and an automation sends the page. */
  async edit(page: StoredPage, task: TaskInput, by: User): Promise<void> {
    this.tell(by.name, `edits "${titleOf(page)}": ${JSON.stringify(task)}`)
    this.notion.edit(page.id, task, by)
    await this.press(page)
  }

  /** The automation alone. */
  async press(page: StoredPage): Promise<void> {
    const status = await this.#deliver(actionWebhook(page))
    if (status !== 200) throw new Error(`The app answered ${status} to a webhook.`)
  }

  /** Waits until no lane waits or runs and no notification is in progress. */
  async still(within: Millis = 60_000): Promise<void> {
    do {
      await Promise.allSettled(this.#sending)
      await this.#stage.idle({ flows: FLOWS, within })
    } while (this.#sending.size > 0)
  }

  async restart(whileDown: () => void): Promise<void> {
    await this.keepFigures()
    await this.#stage.restart(async () => whileDown())
  }

  /** Adds up what the app has counted since it was started. */
  async keepFigures(): Promise<void> {
    const { figures } = this.world
    for (const [name, value] of await globalFigures(this.app)) figures.set(name, (figures.get(name) ?? 0) + value)
  }

  /** Whose tasks do not stand as they should. */
  unranked(): readonly string[] {
    return unranked(this.notion.pages.values(), this.#stage.clock.now(), this.#settings.calendarOf)
  }

  async #deliver({ path, headers, body }: Webhook): Promise<number> {
    const response = await this.#stage.send(path, { method: 'POST', headers, body })
    await response.body?.cancel()
    return response.status
  }

  #send(call: () => Promise<unknown>): void {
    const sending = call().catch((error: unknown) => this.tell('notion', `a webhook failed: ${String(error)}`))
    this.#sending.add(sending)
    void sending.finally(() => this.#sending.delete(sending))
  }
}

const ENDINGS = ['run.done', 'run.snoozed', 'run.deferred', 'run.retry', 'run.dead'] as const

/** By what the app has emitted. */
export function turnsIn(emitted: <N extends EventName>(name: N) => readonly EventMap[N][]): readonly Turn[] {
  const lasted = new Map<string, Millis>()
  for (const name of ENDINGS) for (const { run, attempt, ms } of emitted(name)) lasted.set(`${run} ${attempt}`, ms)
  return emitted('run.claimed').flatMap(({ flow, key: user, run, attempt, due, late }) => {
    if (flow !== 'rank-user') return []
    const began = due + late
    return [{ user, due, began, ended: began + (lasted.get(`${run} ${attempt}`) ?? Infinity) }]
  })
}

/** People of the scenarios are called as their ids say. */
export function nameOf(user: string): string {
  return user.replace('user-', '')
}

function titleOf(page: StoredPage): string {
  const [title] = page.values.get('Name') as readonly { plain_text: string }[]
  return title?.plain_text ?? page.id
}
