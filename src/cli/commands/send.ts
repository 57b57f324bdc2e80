// `sluice send`: a test request to a source, signed as its provider would, by the secret that the configuration has.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SluiceError } from '../../errors.ts'
import type { DeclaredSource } from '../../receive/declared-source.ts'
import type { Sluice } from '../../sluice.ts'
import { keepForAnswers } from '../answer-stream.ts'
import { findServer } from '../api-call.ts'
import { pathOf, type Answer } from '../caller.ts'
import { misused, texts, type Command, type Scene } from '../command.ts'
import { configFile, configured } from '../config-file.ts'
import { EXIT, type Exit } from '../exit.ts'
import { many, plain } from '../output.ts'
import { Progress } from '../progress.ts'
import { ended } from '../problem.ts'
import { reasonOf, ServerCaller } from '../server-call.ts'
import type { Signed } from '../signed/signed.ts'
import { SIGNERS } from '../signed/signers.ts'

interface Sent {
  readonly status: number
  readonly body: string
}

const COUNT_MOST = 1_000_000

export const send: Command = {
  words: 'send',
  takes: ['<source>'],
  says: 'a signed test request to a source of the configuration',
  options: texts({
    type: 'of the event, where the scheme has one in a header, or in the example that is sent without --data',
    data: 'the body: a file, - for standard input, or JSON as it stands; an example unless said',
    count: 'how many, each with an id of its own; 1 unless said',
    secret: 'another one than the configuration has',
  }),
  run: async (scene) => {
    const { given, where, out } = scene
    const [name = ''] = given.words
    const count = Number(given.text('count') ?? 1)
    if (!Number.isInteger(count) || count < 1 || count > COUNT_MOST)
      return misused(scene, '--count is a number from 1.')
    keepForAnswers()
    const { app } = await configured(configFile(where.folder, where.config))
    const declared = declaredBy(app, name)
    const data = dataOf(given.text('data'))
    const server = await findServer(where)
    if (!(server instanceof ServerCaller)) return ended(out, server)
    const secret = given.text('secret') ?? (await secretOf(declared, name, server))
    if (typeof secret !== 'string') return ended(out, secret)
    out.tell(`Sends to ${server.where}${declared.path}`)
    const signed = (): Signed | string =>
      SIGNERS.get(declared.source.scheme)?.({
        type: given.text('type'),
        data,
        id: randomUUID(),
        now: scene.clock.now(),
        secret,
        url: new URL(server.where + declared.path),
        sender: declared.source.sender,
      }) ?? `Nobody here knows how ${declared.source.scheme} is signed.`
    return sendAll(scene, count, signed)
  },
}

async function sendAll(scene: Scene, count: number, signed: () => Signed | string): Promise<Exit> {
  const { out, clock } = scene
  const progress = count === 1 ? undefined : new Progress({ stream: out.stderr, clock, what: 'sent', total: count })
  const byStatus = new Map<number, number>()
  for (let done = 1; done <= count; done++) {
    const request = signed()
    if (typeof request === 'string') return misused(scene, request)
    const sent = await post(request)
    if (typeof sent === 'string') return ended(out, { kind: 'unreached', why: sent })
    byStatus.set(sent.status, (byStatus.get(sent.status) ?? 0) + 1)
    progress?.at(done)
    if (progress === undefined) print(scene, sent)
  }
  progress?.end()
  if (count > 1) printAll(scene, byStatus)
  const refused = [...byStatus.keys()].filter((status) => status >= 300)
  if (refused.length === 0) return EXIT.done
  return refused.some((status) => status === 401 || status === 403) ? EXIT.refused : EXIT.failed
}

async function post({ url, headers, body }: Signed): Promise<Sent | string> {
  try {
    const response = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) })
    return { status: response.status, body: await response.text() }
  } catch (error) {
    return `${url.origin} does not answer: ${reasonOf(error)}.`
  }
}

function print({ out }: Scene, { status, body }: Sent): void {
  if (out.asJson) out.answer({ status, body })
  else out.line(`${out.paint(status < 300 ? 'green' : 'red', String(status))} ${plain(body)}`.trimEnd())
}

function printAll({ out }: Scene, byStatus: ReadonlyMap<number, number>): void {
  if (out.asJson) return out.answer(Object.fromEntries(byStatus))
  for (const [status, n] of byStatus) out.line(`${status}: ${many(n, 'request')}`)
}

function declaredBy(app: Sluice, name: string): DeclaredSource {
  const declared = app.sources.declared(name)
  if (declared !== undefined) return declared
  const known = app.sources.list().map((one) => one.name)
  const others = known.length === 0 ? 'there is none' : `there are ${known.join(', ')}`
  throw new SluiceError('NOT_FOUND', `There is no source ${JSON.stringify(name)}; ${others}.`)
}

/** One that came by handshake is known to the server alone. */
async function secretOf({ source }: DeclaredSource, name: string, server: ServerCaller): Promise<string | Unasked> {
  if (source.secrets !== 'by-handshake') return source.secrets[0] ?? ''
  const answer = await server.call({ method: 'POST', path: pathOf('v1/sources', name, 'show-secret'), body: {} })
  if (answer.kind !== 'done') return answer
  const { secret } = answer.value as { readonly secret?: string }
  if (secret !== undefined) return secret
  throw new SluiceError(
    'NOT_POSSIBLE',
    `${name} waits for the handshake that brings its secret; --secret gives another.`,
  )
}

type Unasked = Exclude<Answer, { readonly kind: 'done' }>

function dataOf(given: string | undefined): Uint8Array | undefined {
  if (given === undefined) return undefined
  if (given === '-') return readFileSync(0)
  return /^\s*[[{]/.test(given) ? Buffer.from(given) : readFileSync(given)
}
