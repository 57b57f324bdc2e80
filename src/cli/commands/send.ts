// `sluice send` posts a test request to a source, signed as its provider would, with the configured secret.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SluiceError } from '../../errors.ts'
import { RESULTS_HEADER, type ReceivedEvent } from '../../receive/accepted-response.ts'
import type { SignedRequest } from '../../receive/source.ts'
import type { DeclaredSource } from '../../receive/source-options.ts'
import type { Sluice } from '../../app/sluice.ts'
import { findServer } from '../find-client.ts'
import { toPath, type FailedResult } from '../api-client.ts'
import { reportMisuse, textOptions, type Command, type CommandContext } from '../command.ts'
import { findConfigPath, loadConfig } from '../config-file.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { redirectStdout, formatCount, escapeText } from '../output.ts'
import { Progress } from '../progress.ts'
import { reportFailure } from '../problem.ts'
import { errorReason, HttpApiClient } from '../http-api-client.ts'

interface SendResponse {
  readonly status: number
  readonly body: string
  /** The events of the request, as far as the response names them. */
  readonly events: readonly ReceivedEvent[]
}

const MAX_COUNT = 1_000_000

export const send: Command = {
  name: 'send',
  positionals: ['<source>'],
  description: 'send a signed test request to a configured source',
  options: textOptions({
    type: 'type of the event, if the source reads it from a header, or for the example body',
    data: 'body: a file, - for standard input, or inline JSON; default an example',
    count: 'number of requests, each with its own id; default 1',
    secret: 'secret to sign with; default the configured one',
  }),
  run: async (context) => {
    const { args, target, output } = context
    const [name = ''] = args.words
    const count = Number(args.text('count') ?? 1)
    if (!Number.isInteger(count) || count < 1 || count > MAX_COUNT)
      return reportMisuse(context, `--count must be a whole number from 1 to ${MAX_COUNT}; got ${args.text('count')}.`)
    redirectStdout()
    const { app } = await loadConfig(findConfigPath(target.folder, target.config))
    const declared = findSource(app, name)
    const data = readData(args.text('data'))
    const server = await findServer(target)
    if (!(server instanceof HttpApiClient)) return reportFailure(output, server)
    const secret = args.text('secret') ?? (await readSecret(declared, name, server))
    if (typeof secret !== 'string') return reportFailure(output, secret)
    const url = new URL(server.location + exampleRequestPath(declared))
    output.printVerbose(`Sending to ${url.href}`)
    const signed = (): SignedRequest | string =>
      declared.source.sign?.({
        type: args.text('type'),
        data,
        id: randomUUID(),
        now: context.clock.now(),
        secret,
        url,
      }) ?? `sluice send cannot sign requests of the scheme ${declared.source.scheme}.`
    return sendAll(context, { count, server, signed })
  },
}

/** A source with a path that ends in `/*` gets the request at its first known suffix. */
function exampleRequestPath({ path, suffixes = ['test'] }: DeclaredSource): string {
  return path.endsWith('/*') ? path.slice(0, -1) + suffixes[0] : path
}

interface SendOptions {
  readonly count: number
  readonly server: HttpApiClient
  readonly signed: () => SignedRequest | string
}

async function sendAll(context: CommandContext, { count, server, signed }: SendOptions): Promise<ExitCode> {
  const { output, clock } = context
  const progress = count === 1 ? undefined : new Progress({ stream: output.stderr, clock, what: 'sent', total: count })
  const byStatus = new Map<number, number>()
  const byKind = new Map<string, number>()
  let last: SendResponse | undefined
  for (let done = 1; done <= count; done++) {
    const request = signed()
    if (typeof request === 'string') return reportMisuse(context, request)
    const sent = await post(request)
    if (typeof sent === 'string') return reportFailure(output, { kind: 'unreached', why: sent })
    byStatus.set(sent.status, (byStatus.get(sent.status) ?? 0) + 1)
    for (const { kind } of sent.events) byKind.set(kind, (byKind.get(kind) ?? 0) + 1)
    progress?.update(done)
    last = sent
    if (progress === undefined) printResponse(context, sent, await readNotes(sent, server))
  }
  progress?.end()
  if (count > 1) {
    const notes = last === undefined ? [] : await readNotes(last, server)
    printSummary(context, { byStatus, byKind, notes })
  }
  const refused = [...byStatus.keys()].filter((status) => status >= 300)
  if (refused.length === 0) return EXIT.done
  return refused.some((status) => status === 401 || status === 403) ? EXIT.refused : EXIT.failed
}

async function post({ url, headers, body }: SignedRequest): Promise<SendResponse | string> {
  try {
    const init = { method: 'POST', headers: { ...headers, [RESULTS_HEADER]: '1' }, body: Buffer.from(body) }
    const response = await fetch(url, init)
    const { status } = response
    const text = await response.text()
    return { status, body: text, events: status < 300 ? parseEvents(response.headers, text) : [] }
  } catch (error) {
    return `${url.origin} is unreachable: ${errorReason(error)}.`
  }
}

function printResponse(
  { output: out }: CommandContext,
  { status, body, events }: SendResponse,
  notes: readonly string[],
): void {
  if (out.asJson) return out.printJson({ status, body, events, notes })
  const result = events.length === 0 ? escapeText(readProblem(body) ?? body) : describeEvents(events)
  out.print(`${out.paint(status < 300 ? 'green' : 'red', String(status))} ${result}`.trimEnd())
  for (const note of notes) out.print(escapeText(note))
}

function describeEvents(events: readonly ReceivedEvent[]): string {
  const shown = events.slice(0, MAX_NOTED).map(({ id, kind, of }) => `${kind} ${of === undefined ? id : `of ${of}`}`)
  const more = events.length - shown.length
  return escapeText([...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', '))
}

/** Returns undefined if the body is no problem of Sluice. The response has no fix, because strangers get it too. */
function readProblem(body: string): string | undefined {
  try {
    const { code, detail } = JSON.parse(body) as { readonly code?: unknown; readonly detail?: unknown }
    if (typeof code !== 'string' || typeof detail !== 'string') return undefined
    return `${code}: ${detail} sluice sources refused shows the fix.`
  } catch {
    return undefined
  }
}

interface Summary {
  readonly byStatus: ReadonlyMap<number, number>
  /** How many events were stored, were duplicates, …; empty if the source responds in its own format. */
  readonly byKind: ReadonlyMap<string, number>
  readonly notes: readonly string[]
}

function printSummary({ output }: CommandContext, { byStatus, byKind, notes }: Summary): void {
  if (output.asJson)
    return output.printJson({ ...Object.fromEntries(byStatus), events: Object.fromEntries(byKind), notes })
  for (const [status, n] of byStatus) output.print(`${status}: ${formatCount(n, 'request')}`)
  for (const [kind, n] of byKind) output.print(`${escapeText(kind)}: ${formatCount(n, 'event')}`)
  if (byKind.has('duplicate'))
    output.print('A duplicate has the id of a stored event. Pass other --data to send a new event.')
  for (const note of notes) output.print(`last request: ${escapeText(note)}`)
}

/** How many events of one request are shown and looked up. */
const MAX_NOTED = 10

/** Returns why flows did not take the events. If the server does not let the caller read events, there are no notes. */
async function readNotes({ events }: SendResponse, server: HttpApiClient): Promise<readonly string[]> {
  // For a duplicate, the first event is the stored one.
  const ids = events.slice(0, MAX_NOTED).map(({ id, of = id }) => of)
  const answers = await Promise.all(ids.map((id) => server.call({ method: 'GET', path: toPath('v1/events', id) })))
  return answers.flatMap((answer) => {
    const note = answer.kind === 'done' ? (answer.value as { readonly note: string }).note : ''
    return note === '' ? [] : note
  })
}

/** A source that responds in the format of its provider names the events in a header. A proxy may remove the header. */
function parseEvents(headers: Headers, body: string): readonly ReceivedEvent[] {
  const results = headers.get(RESULTS_HEADER)
  try {
    if (results !== null) return JSON.parse(decodeURIComponent(results)) as readonly ReceivedEvent[]
    const { events = [] } = JSON.parse(body) as { readonly events?: readonly Partial<ReceivedEvent>[] }
    return events.filter((event): event is ReceivedEvent => event.id !== undefined && event.kind !== undefined)
  } catch {
    return []
  }
}

function findSource(app: Sluice, name: string): DeclaredSource {
  const declared = app.admin.sources.declared(name)
  if (declared !== undefined) return declared
  const known = app.admin.sources.list().map((one) => one.name)
  const fix = known.length === 0 ? "Declare one: app.source('name', …)." : `Use one of these: ${known.join(', ')}.`
  throw new SluiceError('NOT_FOUND', `There is no source ${JSON.stringify(name)}.`, undefined, fix)
}

/** Only the server knows a secret that came by handshake. */
async function readSecret(
  { source }: DeclaredSource,
  name: string,
  server: HttpApiClient,
): Promise<string | FailedResult> {
  if (source.secrets !== 'by-handshake') return source.secrets[0] ?? ''
  const answer = await server.call({ method: 'POST', path: toPath('v1/sources', name, 'show-secret'), body: {} })
  if (answer.kind !== 'done') return answer
  const { secret } = answer.value as { readonly secret?: string }
  if (secret !== undefined) return secret
  throw new SluiceError(
    'CONFLICT',
    `${name} waits for the handshake that contains its secret.`,
    undefined,
    'Wait for the handshake, or pass --secret.',
  )
}

function readData(value: string | undefined): Uint8Array | undefined {
  if (value === undefined) return undefined
  if (value === '-') return readFileSync(0)
  return /^\s*[[{]/.test(value) ? Buffer.from(value) : readFileSync(value)
}
