// `Workspace` is a workspace with its alerts, in the seconds of the design: a play compresses them, a test does not.
import type { Stage } from '../../kit/stage.ts'
import { PRESETS } from '../domain/debouncing.ts'
import type { EventType } from '../domain/event-types.ts'
import { occurred } from '../domain/events.ts'
import type { NotificationBody } from '../domain/notification.ts'
import type { World } from '../world.ts'

/** The milliseconds of a second of the design, in real time. */
const COMPRESSED = 40
/** How late a notification may be in real time, on a busy machine. */
const PATIENCE = 10_000
const FLOWS = ['match', 'collect', 'send'] as const

export interface AlertInApi {
  readonly id: string
  readonly debouncing: { readonly enabled: boolean; readonly window_size: number }
  readonly windows: readonly { readonly event_type: EventType; readonly events: number }[]
  readonly health: { readonly status: string; readonly failedBatches: number }
  readonly headers: readonly string[]
  readonly signing_secret?: string
  /** Where it sends to. */
  readonly path: string
}

export interface Answer {
  readonly status: number
  readonly json: Readonly<Record<string, unknown>>
}

export class Workspace {
  readonly stage: Stage<World>
  readonly name: string
  /** When the last event was published, on the clock that only goes forward. */
  published = 0
  #alerts = 0
  #events = 0

  private constructor(stage: Stage<World>) {
    this.stage = stage
    this.name = `workspace-${++stage.world.made}`
  }

  static async open(stage: Stage<World>): Promise<Workspace> {
    stage.world.apiKey ??= (await stage.app.admin.keys.create({ name: 'scenarios', role: 'operate' })).secret
    return new Workspace(stage)
  }

  /** An alert about `trace:errors` with the window of the design. */
  async alert(fields: Readonly<Record<string, unknown>> = {}): Promise<AlertInApi> {
    const n = ++this.#alerts
    const kinds: Readonly<Record<string, string>> = { slack: '/services', pagerduty: '/v2/enqueue' }
    const path = `${kinds[String(fields['alert_type'])] ?? '/general'}/${this.name}/${n}`
    const { status, json } = await this.call('POST', '/alerts', {
      workspace: this.name,
      name: `Alert ${n}`,
      alert_type: 'general',
      url: this.stage.url('receivers') + path,
      event_types: ['trace:errors'],
      debouncing: this.window(60),
      ...fields,
    })
    if (status !== 201) throw new Error(`The alert was not created: ${JSON.stringify(json)}`)
    return { ...(json as unknown as AlertInApi), path }
  }

  window(seconds: number): object {
    return { window_size: this.ms(seconds) }
  }

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.stage.world.apiKey}`, 'content-type': 'application/json' }
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await this.stage.send(path, init)
    return { status: response.status, json: (await response.json()) as Answer['json'] }
  }

  async show(id: string): Promise<AlertInApi> {
    return (await this.call('GET', `/alerts/${id}`)).json as unknown as AlertInApi
  }

  /** So many events at the same time. Returns their ids. */
  async happen(event_type: EventType = 'trace:errors', count = 1): Promise<readonly string[]> {
    const ids = Array.from({ length: count }, () => `${this.name}-event-${++this.#events}`)
    const { app, clock, tell } = this.stage
    tell(this.name, `${count} × ${event_type}`)
    this.published = clock.monotonic()
    const data = { event_type, user_name: 'ada' }
    await app.publish(ids.map((id) => occurred({ ...data, metadata: { trace: id } }, { id, tenant: this.name })))
    return ids
  }

  /** So many seconds of the design in milliseconds. */
  ms(seconds: number): number {
    return seconds * (this.stage.isVirtual ? 1_000 : COMPRESSED)
  }

  async pass(seconds: number): Promise<void> {
    await this.stage.sleep(this.ms(seconds))
  }

  async idle(): Promise<void> {
    await this.stage.idle({ flows: FLOWS, within: 900_000 })
  }

  /** What a general receiver got. */
  got(path: string): readonly NotificationBody[] {
    return this.stage.world.receivers.notifications(path)
  }

  /** Waits until a receiver has so many notifications. */
  async until(path: string, count: number): Promise<void> {
    const { receivers } = this.stage.world
    const has = (): boolean => receivers.received.filter((one) => one.path === path && one.status < 300).length >= count
    await this.stage.until(`${count} notifications at ${path}`, has, 900_000)
  }

  check(says: string, held: boolean): void {
    this.stage.check(says, held)
  }

  /** Whether the notifications have these ids, each list in its order, and the notifications in theirs. */
  checkIds(what: string, path: string, wanted: readonly (readonly string[])[]): void {
    this.#compareIds(what, path, (ids) => JSON.stringify(ids) === JSON.stringify(wanted))
  }

  /** As `checkIds`, for windows that end in the same millisecond: they run side by side, so their notifications have no order. */
  checkIdsSideBySide(what: string, path: string, wanted: readonly (readonly string[])[]): void {
    this.#compareIds(what, path, (ids) => inAnyOrder(ids) === inAnyOrder(wanted))
  }

  #compareIds(what: string, path: string, isWanted: (ids: readonly (readonly string[])[]) => boolean): void {
    const ids = this.got(path).map(({ payload }) => payload.eventIds)
    const shown = ids.map((list) => (list.length > 6 ? `${list.length} ids` : list.join(' ')))
    this.check(`${what}: ${shown.join(' | ')}`, isWanted(ids))
  }

  /** Each id is in exactly one notification. */
  checkOnce(path: string, ids: readonly string[]): void {
    const got = this.got(path).flatMap(({ payload }) => payload.eventIds)
    const isOnce = got.length === ids.length && new Set(got).size === ids.length && ids.every((id) => got.includes(id))
    this.check(`each of ${ids.length} events is in exactly one notification`, isOnce)
  }

  /** The notification came so long after `since`: exactly in virtual time, and never early. */
  checkWait(path: string, n: number, since: number, seconds: number): void {
    const { received } = this.stage.world.receivers
    const at = received.filter((one) => one.path === path && one.status < 300)[n]?.at ?? Number.NaN
    const [waited, wanted] = [at - since, this.ms(seconds)]
    const isRight = this.stage.isVirtual ? waited === wanted : waited > wanted - 20 && waited < wanted + PATIENCE
    this.check(`it came after ${Math.round(waited)} ms; ${wanted} were due`, isRight)
  }
}

function inAnyOrder(lists: readonly (readonly string[])[]): string {
  return lists
    .map((list) => JSON.stringify(list))
    .toSorted()
    .join()
}

export const REAL_TIME = PRESETS['real-time']
