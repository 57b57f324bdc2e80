// `Transforms` implements `app.endpoints.transforms`: the code of a subscriber that changes the events of an endpoint between
// its filter and its form. A failure costs the delivery that it happens in, and nothing else.
import { hash } from 'node:crypto'
import type { Clock, Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { EventInput } from '../../model/event.ts'
import { FlowEvent } from '../../model/flow-event.ts'
import { createEvent } from '../../model/new-event.ts'
import type { Store } from '../../store/contract/index.ts'
import type { ArgumentShapes } from '../../validate/options.ts'
import { createContent } from '../forms/message.ts'
import type { Endpoint } from '../endpoint.ts'
import { toEndpoint, type EndpointDocs } from '../endpoint-docs.ts'
import { parseOutput, toInput, TransformError, type TransformedMessage } from './output.ts'
import type { ScriptFailure, ScriptResult } from './script.ts'
import type { ScriptThreads } from './threads.ts'
import { findVersion, type TransformVersion, type TransformVersions } from './versions.ts'

export interface TransformsDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly now: () => Millis
  readonly docs: EndpointDocs
  readonly versions: TransformVersions
  /** Loaded with the first transformation. */
  readonly threads: () => Promise<ScriptThreads>
}

/** The code, or the version whose code is set again: exactly one of them. */
export interface NewTransform {
  readonly code?: string
  readonly version?: number
}

export interface EndpointTransform {
  /** The version that is used. Missing without a transformation. */
  readonly current?: TransformVersion
  /** The kept versions, newest first. */
  readonly versions: readonly TransformVersion[]
}

export interface TransformTestInput {
  /** Default: the version that is used. */
  readonly code?: string
  readonly version?: number
  /** The id of a stored event of the endpoint's tenant. */
  readonly event?: string
  /** An event that is not stored, instead. Default: a test event. */
  readonly sample?: Pick<EventInput, 'type' | 'data' | 'source' | 'subject'>
}

export interface TransformTestResult {
  /** The events that the function got. */
  readonly input: readonly unknown[]
  /** What the function returned; null for nothing. Missing if it failed. */
  readonly output?: unknown
  /** The body that would be posted. Missing if it failed, or if nothing would be posted. */
  readonly body?: string
  readonly contentType?: string
  /** Empty if it worked. */
  readonly error: string
  /** The line of the code at which it failed, if known. */
  readonly line?: number
  readonly console: readonly string[]
  readonly ms: number
}

/** One message before its form. */
export interface MessageToTransform {
  readonly endpoint: Endpoint
  /** The id of the message. */
  readonly id: string
  /** The name of the delivery. */
  readonly type: string
  readonly events: readonly FlowEvent[]
}

const CODE_BYTES_MAX = 65_536
const INPUT_BYTES_MAX = 8 * 1_024 * 1_024
const OUTPUT_BYTES_MAX = 8 * 1_024 * 1_024
/** For a body that a person looks at. */
const SHOWN_MAX = 100_000
/** Stands for the key of an integration, which a body of PagerDuty contains. */
const HIDDEN_SECRET = '*'.repeat(32)
const TEST_DATA = { text: 'This is a test: nothing has happened.' }

export class Transforms {
  readonly #deps: TransformsDependencies

  constructor(deps: TransformsDependencies) {
    this.#deps = deps
  }

  /** `set` checks the code and uses it from the next attempt on. */
  async set(id: string, given: NewTransform, by = ''): Promise<TransformVersion> {
    const { docs, versions } = this.#deps
    await docs.get(id)
    const { code: text, version } = given
    if ((text === undefined) === (version === undefined)) {
      throw new SluiceError('ENDPOINT_INVALID', 'transform: must have either code or version. Nothing was stored.')
    }
    const code =
      version === undefined ? await this.#check(id, text) : findVersion(await versions.list(id), version).code
    const made = await versions.add(id, code, by)
    const what = `set the transformation of endpoint ${id} to version ${made.version}`
    await docs.change(id, { who: by, what }, (kept) => ({ ...kept, transform: made.version }))
    return made
  }

  async get(id: string): Promise<EndpointTransform> {
    const { transform: version } = await this.#deps.docs.get(id)
    const versions = (await this.#deps.versions.list(id)).toReversed()
    const current = versions.find((one) => one.version === version)
    return { ...(current !== undefined && { current }), versions }
  }

  /** `remove` keeps the versions, so that one can be set again. */
  async remove(id: string, by = ''): Promise<'ok' | 'missing'> {
    const { docs } = this.#deps
    if ((await docs.get(id)).transform === null) return 'missing'
    const what = `removed the transformation of endpoint ${id}`
    await docs.change(id, { who: by, what }, (kept) => ({ ...kept, transform: null }))
    return 'ok'
  }

  /** `test` runs the code on one event and posts nothing. */
  async test(id: string, asked: TransformTestInput = {}): Promise<TransformTestResult> {
    const endpoint = toEndpoint(await this.#deps.docs.get(id))
    const code = await this.#readCode(endpoint, asked)
    const event = await this.#findEvent(endpoint, asked)
    const message = { endpoint, id: 'msg_test', type: 'test', events: [event] }
    const { output, failure, console, ms } = await this.#run(message, code)
    const seen = { input: [JSON.parse(toInput(event)) as unknown], console, ms: Math.round(ms * 10) / 10 }
    if (failure !== undefined) return { ...seen, error: toError(failure).message, ...toLine(failure) }
    const returned: unknown = output === undefined ? null : JSON.parse(output)
    try {
      const made = applyForm(message, parseOutput(output, message.events))
      return { ...seen, output: returned, ...made, error: '' }
    } catch (error) {
      if (!(error instanceof TransformError)) throw error
      return { ...seen, output: returned, error: error.message }
    }
  }

  /** `apply` transforms one message of a delivery. */
  apply(message: MessageToTransform): TransformedMessage | Promise<TransformedMessage> {
    const { endpoint, events } = message
    if (endpoint.transform === null) return { kind: 'events', events }
    return this.#apply(message, endpoint.transform)
  }

  async #apply(message: MessageToTransform, version: number): Promise<TransformedMessage> {
    const { endpoint, events } = message
    const code = await this.#deps.versions.readCode(endpoint.id, version)
    const { output, failure } = await this.#run(message, code)
    if (failure !== undefined) throw toError(failure)
    return parseOutput(output, events)
  }

  forget(id: string): Promise<void> {
    return this.#deps.versions.forget(id)
  }

  async #run(
    { endpoint: { id, name }, id: message, type, events }: MessageToTransform,
    code: string,
  ): Promise<ScriptResult> {
    const bytes = events.reduce((sum, { body }) => sum + body.length, 0)
    if (bytes > INPUT_BYTES_MAX) {
      return failedResult(`The batch has ${bytes} bytes. A transformation takes 8 MB; lower maxBytes of the delivery.`)
    }
    const context = JSON.stringify({ id: message, delivery: type, endpoint: { id, name } })
    const input = `[[${events.map(toInput).join(',')}],${context}]`
    const time = events.reduce((latest, event) => Math.max(latest, event.time), 0)
    // The same message gives the same body on each attempt.
    const seed = Number.parseInt(hash('sha256', message).slice(0, 12), 16)
    const result = await this.#call(id, { code, input, time, seed })
    return (result.output?.length ?? 0) > OUTPUT_BYTES_MAX
      ? { ...failedResult('It returned more than 8 MB.'), console: result.console, ms: result.ms }
      : result
  }

  async #check(id: string, code: unknown): Promise<string> {
    const checked = assertCode(code)
    const { failure } = await this.#call(id, { code: checked, time: this.#deps.now(), seed: 0 })
    if (failure !== undefined)
      throw invalidTransform(
        `does not load: ${failure.message}${failure.line === undefined ? '' : ` (line ${failure.line})`}.`,
      )
    return checked
  }

  async #call(owner: string, job: Parameters<ScriptThreads['run']>[1]): Promise<ScriptResult> {
    const { clock, threads } = this.#deps
    const run = async (): Promise<ScriptResult> => (await threads()).run(owner, job)
    const working = run()
    return clock.track?.(working) ?? working
  }

  async #readCode(
    { id, transform }: Endpoint,
    { code, version = transform ?? undefined }: TransformTestInput,
  ): Promise<string> {
    if (code !== undefined) return assertCode(code)
    if (version !== undefined) return findVersion(await this.#deps.versions.list(id), version).code
    throw new SluiceError('CONFLICT', `Endpoint ${id} has no transformation. Pass the code to test.`)
  }

  async #findEvent(endpoint: Endpoint, { event, sample }: TransformTestInput): Promise<FlowEvent> {
    const { tenant, id } = endpoint
    if (event === undefined) {
      const input = sample ?? { type: 'endpoint.test', data: { endpoint: id, ...TEST_DATA } }
      return new FlowEvent(createEvent({ ...input, tenant }, { now: this.#deps.now(), dedupeFor: 0 }))
    }
    const store = await this.#deps.store()
    const { item } = await store.get({ kind: 'events', id: event })
    // An endpoint of one tenant must not show the events of another.
    if (item === undefined || item.purged || item.tenant !== tenant || item.body === undefined) {
      throw new SluiceError('NOT_FOUND', `The endpoint's tenant has no event ${JSON.stringify(event.slice(0, 100))}.`)
    }
    return new FlowEvent({ ...item, body: item.body })
  }
}

/** The arguments of each member, which are checked when it is called. */
export const TRANSFORM_ARGUMENTS: ArgumentShapes<Transforms> = {
  // `set` checks the code itself.
  set: { id: 'text', given: { 'code?': 'anything', 'version?': 'count' }, 'by?': 'text' },
  get: { id: 'text' },
  remove: { id: 'text', 'by?': 'text' },
  test: {
    id: 'text',
    'input?': { 'code?': 'anything', 'version?': 'count', 'event?': 'text', 'sample?': { type: 'text' } },
  },
}

function assertCode(code: unknown): string {
  const isText = typeof code === 'string' && code !== '' && code.isWellFormed()
  if (isText && Buffer.byteLength(code) <= CODE_BYTES_MAX) return code
  throw invalidTransform(`must be a text of 1 to ${CODE_BYTES_MAX.toLocaleString('en')} bytes.`)
}

function invalidTransform(what: string): SluiceError {
  return new SluiceError('ENDPOINT_INVALID', `transform: code ${what} Nothing was stored.`)
}

/** The body for a person to look at. It shows no secret. */
function applyForm(
  message: MessageToTransform,
  made: TransformedMessage,
): { readonly body?: string; readonly contentType?: string } {
  if (made.kind === 'skipped') return {}
  const { headers, body } =
    made.kind === 'body'
      ? made.content
      : createContent({ ...message, events: made.events, secret: HIDDEN_SECRET, build: undefined })
  return { body: body.toString().slice(0, SHOWN_MAX), contentType: headers['content-type'] ?? '' }
}

function toError({ message, line }: ScriptFailure): TransformError {
  return new TransformError(message, line)
}

function toLine({ line }: ScriptFailure): { readonly line?: number } {
  return line === undefined ? {} : { line }
}

function failedResult(message: string): ScriptResult {
  return { failure: { why: 'threw', message }, console: [], ms: 0 }
}
