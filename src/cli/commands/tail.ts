// `sluice tail`: what happens on the server, as it happens, until somebody has seen enough.
import type { Clock, Millis } from '../../clock.ts'
import { roomForMore } from '../answer-stream.ts'
import { findServer } from '../api-call.ts'
import { texts, type Command, type Scene } from '../command.ts'
import { EXIT, type Exit } from '../exit.ts'
import { plain, time } from '../output.ts'
import { ended } from '../problem.ts'
import { reasonOf, ServerCaller } from '../server-call.ts'
import { serverEvents, type ServerEvent } from '../server-events.ts'

interface Change {
  readonly at: number
  readonly kind: string
  readonly flow: string
  readonly id: string
  readonly detail: string
}

const AGAIN_AFTER: Millis = 1_000

export const tail: Command = {
  words: 'tail',
  says: 'what happens, as it happens: arrivals, runs, acts of people',
  options: texts({ flow: 'of this flow' }),
  run: async (scene) => {
    const server = await findServer(scene.where)
    if (!(server instanceof ServerCaller)) return ended(scene.out, server)
    scene.out.tell(`Asks ${server.where}`)
    return follow(scene, server)
  },
}

/** Goes on where it was after the connection is lost; ends if it never was, or is refused. */
async function follow(scene: Scene, server: ServerCaller): Promise<Exit> {
  const { out, signal, clock } = scene
  let last = ''
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const opened = await open(server, last, signal)
    if (typeof opened !== 'string' && opened.ok) {
      if (!isFirst) out.note('Connected again.')
      last = await print(scene, opened, last)
      if (!signal.aborted) out.note('The connection is lost: it is tried again.')
    } else if (isFirst || isRefusal(opened)) {
      return signal.aborted ? EXIT.done : refused(scene, server, opened)
    }
    if (!signal.aborted) await sleep(clock, AGAIN_AFTER, signal)
  }
  return EXIT.done
}

async function open(server: ServerCaller, last: string, signal: AbortSignal): Promise<Response | string> {
  const headers = { ...server.headers, accept: 'text/event-stream', ...(last !== '' && { 'last-event-id': last }) }
  try {
    return await fetch(`${server.where}/v1/stream`, { headers, signal })
  } catch (error) {
    return `${server.where} does not answer: ${reasonOf(error)}.`
  }
}

/** While a server begins or ends, others than these are answered, and pass. */
function isRefusal(answer: Response | string): boolean {
  return typeof answer !== 'string' && (answer.status === 401 || answer.status === 403)
}

async function refused({ out }: Scene, server: ServerCaller, answer: Response | string): Promise<Exit> {
  if (typeof answer === 'string') return ended(out, { kind: 'unreached', why: answer })
  await answer.body?.cancel()
  // The same door, asked for something that is answered at once: it says why.
  const asked = await server.call({ method: 'GET', path: '/v1/flows' })
  if (asked.kind !== 'done') return ended(out, asked)
  return ended(out, { kind: 'unreached', why: `${server.where} answered ${answer.status}.` })
}

/** Answers the id of the last one. */
async function print(scene: Scene, response: Response, before: string): Promise<string> {
  let last = before
  try {
    for await (const event of serverEvents(response.body)) {
      last = event.id === '' ? last : event.id
      printOne(scene, event)
      // Whoever reads slowly is waited for: what the server has too much of it leaves out, and says so.
      await roomForMore()
    }
  } catch {
    // Cut off: whoever reads on says from where.
  }
  return last
}

function printOne({ out, given }: Scene, { event, data }: ServerEvent): void {
  if (event === 'begun') return out.tell('Watching.')
  if (event === 'skipped') return out.note('Some of it was too fast, and is not shown.')
  const change = JSON.parse(data) as Change
  const flow = given.text('flow')
  if (flow !== undefined && change.flow !== flow) return
  if (out.asJson) return out.answer(change)
  const what = `${out.paint('bold', change.kind.padEnd(8))} ${plain(change.flow)} ${plain(change.id)}`
  out.line(`${time(change.at)}  ${what} ${plain(change.detail)}`.trimEnd())
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
