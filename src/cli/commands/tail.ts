// `sluice tail` prints what happens on the server, live, until it is interrupted.
import type { Clock, Millis } from '../../clock.ts'
import { findServer } from '../find-client.ts'
import { textOptions, type Command, type CommandContext } from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { waitForDrain, escapeText, formatTime } from '../output.ts'
import { reportFailure } from '../problem.ts'
import { errorReason, HttpApiClient } from '../http-api-client.ts'
import { findUnknownFlow } from '../unknown-flow.ts'

interface Change {
  readonly at: number
  readonly kind: string
  readonly flow: string
  readonly id: string
  readonly detail: string
  readonly note?: string
  /** The key of the lane, for a change of one lane. */
  readonly key?: string
  /** The source of a new event, and the first lanes that it entered. */
  readonly source?: string
  readonly lanes?: readonly { readonly flow: string; readonly key?: string }[]
}

const RECONNECT_AFTER: Millis = 1_000

export const tail: Command = {
  name: 'tail',
  description: 'print changes live: arrivals, runs, actions of operators',
  options: textOptions({ flow: 'changes of this flow' }),
  run: async (context) => {
    const server = await findServer(context.target)
    if (!(server instanceof HttpApiClient)) return reportFailure(context.output, server)
    context.output.printVerbose(`Using ${server.location}`)
    const flow = context.args.text('flow')
    const problem = flow === undefined ? undefined : await findUnknownFlow((call) => server.call(call), flow)
    if (problem !== undefined) return reportFailure(context.output, { kind: 'problem', problem })
    return follow(context, server)
  },
}

/** Reconnects and resumes after a lost connection. Ends if the first connection fails or the server rejects it. */
async function follow(context: CommandContext, server: HttpApiClient): Promise<ExitCode> {
  const { output, signal, clock } = context
  let last = ''
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const opened = await openStream(server, last, signal)
    if (typeof opened !== 'string' && opened.ok) {
      if (!isFirst) output.note('Reconnected.')
      last = await printEvents(context, opened, last)
      if (!signal.aborted) output.note('The connection was lost; reconnecting.')
    } else if (isFirst || isRefusal(opened)) {
      return signal.aborted ? EXIT.done : reportRefusal(context, server, opened)
    }
    if (!signal.aborted) await sleep(clock, RECONNECT_AFTER, signal)
  }
  return EXIT.done
}

async function openStream(server: HttpApiClient, last: string, signal: AbortSignal): Promise<Response | string> {
  const headers = { ...server.headers, accept: 'text/event-stream', ...(last !== '' && { 'last-event-id': last }) }
  try {
    return await fetch(`${server.location}/v1/stream`, { headers, signal })
  } catch (error) {
    return `${server.location} is unreachable: ${errorReason(error)}.`
  }
}

/** While a server starts or stops, other statuses appear briefly, so they are retried. */
function isRefusal(answer: Response | string): boolean {
  return typeof answer !== 'string' && (answer.status === 401 || answer.status === 403)
}

async function reportRefusal(
  { output: out }: CommandContext,
  server: HttpApiClient,
  answer: Response | string,
): Promise<ExitCode> {
  if (typeof answer === 'string') return reportFailure(out, { kind: 'unreached', why: answer })
  await answer.body?.cancel()
  // The client calls an ordinary route with the same access rules, because its response explains the rejection.
  const asked = await server.call({ method: 'GET', path: '/v1/flows' })
  if (asked.kind !== 'done') return reportFailure(out, asked)
  return reportFailure(out, { kind: 'unreached', why: `${server.location} returned ${answer.status}.` })
}

/** Returns the id of the last event. */
async function printEvents(context: CommandContext, response: Response, before: string): Promise<string> {
  let last = before
  try {
    for await (const event of serverEvents(response.body)) {
      last = event.id === '' ? last : event.id
      printEvent(context, event)
      // Waits for slow readers of the output. The server then drops changes beyond its buffer and reports that.
      await waitForDrain()
    }
  } catch {
    // The connection was cut off; the next one resumes after the last id.
  }
  return last
}

function printEvent({ output, args }: CommandContext, { event, data }: ServerEvent): void {
  if (event === 'begun') return output.printVerbose('Watching.')
  if (event === 'skipped')
    return output.note('Changes may be missing here: the server was restarted, or too many came at once.')
  const change = JSON.parse(data) as Change
  const flow = args.text('flow')
  if (flow !== undefined && change.flow !== flow) return
  if (output.asJson) return output.printJson(change)
  const { kind, key, source, lanes = [] } = change
  const names = [change.flow || source, key, change.id].filter((name) => name !== undefined && name !== '')
  const what = `${output.paint('bold', kind.padEnd(8))} ${escapeText(names.join(' '))}`
  const into = lanes.map((lane) => `${lane.flow} ${lane.key ?? '(a long key)'}`).join(', ')
  const entered = into === '' ? '' : ` → ${escapeText(into)}`
  // People read alerts here, so the note that no flow takes the alert's event is noise.
  const note = change.note === undefined || kind === 'alert' ? '' : `  (${escapeText(change.note)})`
  output.print(`${formatTime(change.at)}  ${what} ${escapeText(change.detail)}${entered}${note}`.trimEnd())
}

function sleep(clock: Clock, ms: Millis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal.addEventListener('abort', end)
  })
}

export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** `serverEvents` parses server-sent events from the bytes of a response, by the WHATWG standard. */
export async function* serverEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerEvent> {
  if (body === null) return
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parseEvent(block)
      if (event !== undefined) yield event
    }
  }
}

/** Returns undefined for a comment, which the server sends as a heartbeat. */
function parseEvent(block: string): ServerEvent | undefined {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const valuesOf = (name: string): readonly string[] =>
    fields.flatMap((field) => (field?.[1] === name ? (field[2] ?? '') : []))
  const data = valuesOf('data')
  if (data.length === 0) return undefined
  return { id: valuesOf('id').at(-1) ?? '', event: valuesOf('event').at(-1) ?? 'message', data: data.join('\n') }
}
