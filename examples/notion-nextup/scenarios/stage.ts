// Where scenarios are played: the stand-in over real HTTP, the app on a store of its own behind a real port, people who edit,
// and somebody who writes down what happens.
import { systemClock, type EventMap, type Millis, type Sluice } from 'sluice'
import { globalFigures } from '../figures.ts'
import { lifeLog } from '../life-log.ts'
import { nextUp } from '../nextup.ts'
import type { Settings } from '../settings.ts'
import { Lag } from '../stand-in/lag.ts'
import { NotionStandIn } from '../stand-in/notion.ts'
import type { StoredPage, TaskInput, User } from '../stand-in/page.ts'
import { serveStandIn } from '../stand-in/server.ts'
import { standInSettings } from '../stand-in/settings.ts'
import { actionWebhook, deliverTo, integrationWebhook, type Deliver } from '../stand-in/webhooks.ts'
import { unranked, type Turn } from './judge.ts'

const FLOWS = ['rank-user', 'read-page'] as const
/** Short enough that windows close while one looks on. */
const DEBOUNCE: Settings['debounce'] = { from: '2s', to: '12s', page: '1s' }
const LATENCY = [60, 180] as const

export type Tell = (who: string, what: string) => void

export class Stage {
  readonly notion: NotionStandIn = new NotionStandIn({ clock: systemClock, latency: LATENCY })
  readonly lag: Lag = new Lag()
  /** Of `rank-user`, in the order in which they began. */
  readonly turns: Turn[] = []
  /** Of all apps that were stopped: each counts from its own start. */
  readonly figures: Map<string, number> = new Map()
  readonly tell: Tell
  /** Whether Notion also tells the integration, of every change. */
  tellsIntegration = false
  readonly #store: string
  #settings: Settings = standInSettings('')
  #app: Sluice | undefined
  #deliver: Deliver = async () => 0
  #closeNotion: () => Promise<void> = async () => {}
  readonly #began = new Map<string, Turn>()
  readonly #sending = new Set<Promise<unknown>>()

  constructor(store: string, tell: Tell) {
    this.#store = store
    this.tell = tell
  }

  get app(): Sluice {
    if (this.#app === undefined) throw new Error('The stage is not open.')
    return this.#app
  }

  async open(): Promise<void> {
    const server = await serveStandIn(this.notion)
    this.#closeNotion = () => server.close()
    this.#settings = { ...standInSettings(server.url), store: this.#store, debounce: DEBOUNCE }
    this.notion.onChange((change) => {
      if (this.tellsIntegration) this.#send(() => this.#deliver(integrationWebhook(change)))
    })
    await this.startApp()
  }

  async startApp(): Promise<void> {
    const app = nextUp(this.#settings, { log: false, shutdownTimeout: '5s', lease: '6s', heartbeat: '2s' })
    this.#app = app
    lifeLog(app, ({ what, user, more }) => {
      // That is what the next line says as well.
      if (what !== 'enqueued') this.tell(nameOf(user), `${what}: ${more}`)
    })
    this.#watch(app)
    await app.start()
    const { url } = await app.listen({ port: 0, host: '127.0.0.1' })
    this.#deliver = deliverTo(url)
  }

  /** What Notion tells meanwhile finds nobody, as with any app that is down. */
  async stopApp(): Promise<void> {
    this.#deliver = async () => 503
    for (const [name, value] of await globalFigures(this.app))
      this.figures.set(name, (this.figures.get(name) ?? 0) + value)
    await this.app.stop()
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#sending)
    await this.stopApp()
    await this.#closeNotion()
    this.lag.stop()
  }

  /** Nobody has any task. */
  clear(): void {
    for (const { id } of this.notion.pages.values()) this.notion.trash(id)
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

  /** Until nothing waits, nothing runs and nobody is being told anything. */
  async still(within: Millis = 60_000): Promise<void> {
    const until = systemClock.monotonic() + within
    for (;;) {
      await Promise.allSettled(this.#sending)
      const lanes = await Promise.all(FLOWS.map((flow) => this.app.admin.lanes.list({ flow })))
      if (lanes.every(({ items }) => items.length === 0) && this.#sending.size === 0) return
      if (systemClock.monotonic() > until) throw new Error(`Something still waits after ${within / 1_000} s.`)
      await sleep(100)
    }
  }

  /** Whose tasks do not stand as they should. */
  unranked(): readonly string[] {
    return unranked(this.notion.pages.values(), systemClock.now(), this.#settings.calendarOf)
  }

  #send(call: () => Promise<unknown>): void {
    const sending = call().catch((error: unknown) => this.tell('notion', `a webhook failed: ${String(error)}`))
    this.#sending.add(sending)
    void sending.finally(() => this.#sending.delete(sending))
  }

  #watch(app: Sluice): void {
    app.on('run.claimed', ({ flow, key, run, due, late }) => {
      if (flow !== 'rank-user') return
      const turn = { user: key, due, began: due + late, ended: Infinity }
      this.#began.set(run, turn)
      this.turns.push(turn)
    })
    const ended = ({ run }: EventMap['run.done' | 'run.snoozed' | 'run.deferred' | 'run.retry' | 'run.dead']): void => {
      const at = this.turns.indexOf(this.#began.get(run) ?? NOBODY)
      const turn = this.turns[at]
      if (turn !== undefined) this.turns[at] = { ...turn, ended: systemClock.now() }
    }
    for (const name of ['run.done', 'run.snoozed', 'run.deferred', 'run.retry', 'run.dead'] as const)
      app.on(name, ended)
  }
}

const NOBODY: Turn = { user: '', due: 0, began: 0, ended: 0 }

export function sleep(ms: Millis): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}

/** People of the scenarios are called as their ids say. */
export function nameOf(user: string): string {
  return user.replace('user-', '')
}

function titleOf(page: StoredPage): string {
  const [title] = page.values.get('Name') as readonly { plain_text: string }[]
  return title?.plain_text ?? page.id
}
