// A stand-in for Notion that the real client talks to: one database of tasks behind the same paths, answers and refusals.
// It is strict where Notion is, takes three calls in any second, and writes down when each call came.
import type { Clock, Millis } from 'sluice'
import { sameId } from '../domain/properties.ts'
import { filterOf } from './filter.ts'
import { emptyOf, pageObject, SCHEMA, valuesOf, type StoredPage, type TaskInput, type User } from './page.ts'
import { Rate } from './rate.ts'
import { invalid, notFound, Refusal, REFUSALS } from './refusal.ts'

export interface StandInOptions {
  readonly clock: Clock
  readonly rate?: number
  /** The period of the rate; default a second. A stand-in that is late itself can use a shorter one. */
  readonly window?: Millis
  /** How long an answer takes, between these two. */
  readonly latency?: readonly [Millis, Millis]
  readonly chance?: () => number
}

export interface Call {
  /** On the clock that only goes forward. */
  readonly at: Millis
  readonly method: string
  readonly path: string
  status: number
}

/** Who changed what: what Notion tells those who listen to its webhooks. */
export interface Change {
  readonly page: StoredPage
  readonly by: User | Bot
  readonly at: Millis
  /** Ids of properties. */
  readonly properties: readonly string[]
}

export interface Bot {
  readonly id: string
  readonly bot: true
}

interface PlannedRefusal {
  readonly status: number
  readonly retryAfter: number | undefined
  readonly path: string | undefined
  left: number
}

export const TOKEN = 'ntn_stand_in_and_good_for_nothing_else'
export const DATA_SOURCE = '1a44be12-0953-4631-b498-9e5817518db8'
export const BOT: Bot = { id: '8e23b6a0-5c4f-4b8e-9a57-0e8a6c1f7d11', bot: true }
const PAGE_SIZE_MOST = 100

export class NotionStandIn {
  readonly calls: Call[] = []
  readonly rate: Rate
  readonly pages: Map<string, StoredPage> = new Map()
  readonly #options: StandInOptions
  readonly #refusals: PlannedRefusal[] = []
  readonly #listeners: ((change: Change) => void)[] = []
  #made = 0

  constructor(options: StandInOptions) {
    this.#options = options
    this.rate = new Rate(options.rate ?? 3, options.window)
  }

  /** Creates a task. No webhook is sent, as for tasks that existed before. */
  add(task: TaskInput): StoredPage {
    const n = ++this.#made
    const id = `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
    const created = new Date(this.#options.clock.now()).toISOString()
    const values = new Map(valuesOf({ status: 'To do', ...task }))
    const page = { id, created, edited: created, editedBy: task.assignees?.[0]?.id ?? '', isTrashed: false, values }
    this.pages.set(id, page)
    return page
  }

  /** Somebody edits a task in Notion: no call, no limit. */
  edit(id: string, task: TaskInput, by: User): void {
    this.#change(this.#page(id), valuesOf(task), by)
  }

  trash(id: string): void {
    this.#page(id).isTrashed = true
  }

  onChange(listener: (change: Change) => void): void {
    this.#listeners.push(listener)
  }

  /** The next calls are answered so: those whose path begins like that, or any. */
  refuse(status: number, how: { retryAfter?: number; times?: number; path?: string } = {}): void {
    this.#refusals.push({ status, retryAfter: how.retryAfter, path: how.path, left: how.times ?? 1 })
  }

  /** A `fetch` for clients in the same process. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const came = this.came(request.method, new URL(request.url).pathname)
    return this.answer(came, request.headers, await request.text())
  }

  /** A call has arrived: from now on it counts, even if it is rejected. */
  came(method: string, path: string): Call {
    const call: Call = { at: this.#options.clock.monotonic(), method, path: path.split('?')[0] ?? '', status: 0 }
    this.calls.push(call)
    return call
  }

  async answer(call: Call, headers: Headers, body: string): Promise<Response> {
    let answer: Response
    try {
      this.#refuseAsPlanned(call.path)
      this.rate.take(call.at)
      answer = Response.json(this.#answerTo(call, headers, body))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      answer = refused(error)
    }
    call.status = answer.status
    await this.#sleep()
    return answer
  }

  #refuseAsPlanned(path: string): void {
    const planned = this.#refusals.find((one) => one.path === undefined || path.startsWith(one.path))
    if (planned === undefined) return
    planned.left--
    if (planned.left <= 0) this.#refusals.splice(this.#refusals.indexOf(planned), 1)
    const { status, retryAfter } = planned
    if (retryAfter !== undefined) this.rate.close(this.#options.clock.monotonic(), retryAfter)
    throw new Refusal(status, REFUSALS[status] ?? 'internal_server_error', 'As planned.', retryAfter)
  }

  #answerTo({ method, path }: Call, headers: Headers, body: string): unknown {
    if (headers.get('authorization') !== `Bearer ${TOKEN}`)
      throw new Refusal(401, 'unauthorized', 'API token is invalid.')
    if (headers.get('notion-version') === null) throw new Refusal(400, 'missing_version', 'Notion-Version is missing.')
    const [, , kind = '', id = '', verb = ''] = path.split('/')
    switch (`${method} ${kind}${verb === '' ? '' : `/${verb}`}`) {
      case 'GET users':
        if (id === 'me') return { object: 'user', id: BOT.id, type: 'bot', name: 'NextUp', bot: {} }
        break
      case 'POST data_sources/query':
        if (!sameId(id, DATA_SOURCE)) throw notFound(`data source with ID: ${id}`)
        return this.#query(jsonOf(body))
      case 'GET pages':
        return pageObject(this.#page(id), DATA_SOURCE)
      case 'PATCH pages':
        return this.#update(this.#page(id), jsonOf(body))
    }
    throw new Refusal(400, 'invalid_request_url', `Invalid request URL: ${method} ${path}.`)
  }

  #query(body: Readonly<Record<string, unknown>>): unknown {
    const { page_size: size = PAGE_SIZE_MOST, start_cursor: cursor, filter } = body
    if (!Number.isInteger(size) || Number(size) < 1 || Number(size) > PAGE_SIZE_MOST) {
      throw invalid(`body.page_size should be from 1 to ${PAGE_SIZE_MOST}, instead was \`${String(size)}\`.`)
    }
    const matches = filterOf(filter)
    const found = [...this.pages.values()].filter((page) => !page.isTrashed && matches(page))
    const from = cursor === undefined ? 0 : found.findIndex(({ id }) => id === cursor)
    if (from === -1) throw invalid('The start_cursor provided is invalid.')
    const results = found.slice(from, from + Number(size))
    const next = found[from + Number(size)]?.id ?? null
    return {
      object: 'list',
      results: results.map((page) => pageObject(page, DATA_SOURCE)),
      has_more: next !== null,
      next_cursor: next,
      type: 'page_or_data_source',
      page_or_data_source: {},
    }
  }

  #update(page: StoredPage, { properties = {} }: Readonly<Record<string, unknown>>): unknown {
    if (page.isTrashed) throw invalid("Can't edit a page that is in the trash.")
    const values = new Map<string, unknown>()
    for (const [name, given] of Object.entries(properties as Record<string, Record<string, unknown>>)) {
      const known = SCHEMA[name]
      if (known === undefined) throw invalid(`${name} is not a property that exists.`)
      const value = given[known.type]
      if (value === undefined) throw invalid(`${name} is expected to be ${known.type}.`)
      if (known.type === 'number' && value !== null && typeof value !== 'number') {
        throw invalid(`body.properties.${name}.number should be a number or null.`)
      }
      if (known.type === 'date' && value !== null && Number.isNaN(Date.parse((value as { start: string }).start))) {
        throw invalid(`body.properties.${name}.date.start should be a valid ISO 8601 date string.`)
      }
      values.set(name, value)
    }
    this.#change(page, values, BOT)
    return pageObject(page, DATA_SOURCE)
  }

  #change(page: StoredPage, values: ReadonlyMap<string, unknown>, by: User | Bot): void {
    const at = this.#options.clock.now()
    for (const [name, value] of values) page.values.set(name, value ?? emptyOf(SCHEMA[name]?.type ?? 'number'))
    page.edited = new Date(at).toISOString()
    page.editedBy = by.id
    const properties = [...values.keys()].map((name) => SCHEMA[name]?.id ?? name)
    for (const listener of this.#listeners) listener({ page, by, at, properties })
  }

  #page(id: string): StoredPage {
    const page = this.pages.get(id) ?? [...this.pages.values()].find((one) => sameId(one.id, id))
    if (page === undefined) throw notFound(`page with ID: ${id}`)
    return page
  }

  async #sleep(): Promise<void> {
    const { latency, clock, chance = Math.random } = this.#options
    if (latency === undefined) return
    const [least, most] = latency
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(least + chance() * (most - least), resolve)
    await promise
  }
}

function jsonOf(body: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(body === '' ? '{}' : body) as Readonly<Record<string, unknown>>
  } catch {
    throw new Refusal(400, 'invalid_json', 'Error parsing JSON body.')
  }
}

function refused({ status, code, message, retryAfter }: Refusal): Response {
  const reason = status === 429 ? { additional_data: { rate_limit_reason: 'integration' } } : {}
  const body = { object: 'error', status, code, message, request_id: crypto.randomUUID(), ...reason }
  return Response.json(body, { status, headers: retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) } })
}
