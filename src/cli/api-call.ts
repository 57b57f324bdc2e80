// One call of the admin API, whoever answers it: the running server where there is one, else the app itself in this process.
import { SluiceError } from '../errors.ts'
import type { Clock } from '../clock.ts'
import type { ListenOptions } from '../http/server.ts'
import { keepForAnswers } from './answer-stream.ts'
import type { Answer, Caller } from './caller.ts'
import { configFile, configured, type Configured } from './config-file.ts'
import { EXIT, type Exit } from './exit.ts'
import type { Output } from './output.ts'
import { answersAsSluice, ServerCaller } from './server-call.ts'

export interface Where {
  readonly url: string | undefined
  readonly key: string | undefined
  readonly config: string | undefined
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const PORT = '8787'

/** Who was named is asked, and nobody else; else who is found. */
export async function findCaller(where: Where): Promise<Caller> {
  const named = await findServer(where)
  if (named !== undefined) return named
  const file = configFile(where.folder, where.config)
  keepForAnswers()
  const app = await configured(file)
  const said = await serverOf(app, where)
  if (said !== undefined) return said
  // Only who asks the app itself needs all that answers.
  const { OwnCaller } = await import('./own-call.ts')
  return new OwnCaller(app.app, file)
}

/** Undefined: none was named, and none answers where it usually is. */
export async function findServer(where: Where): Promise<ServerCaller | undefined> {
  const { env, clock } = where
  const named = where.url ?? env['SLUICE_URL']
  const url = named ?? `http://127.0.0.1:${env['PORT'] ?? PORT}`
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new SluiceError('CONFIG_INVALID', `url is ${JSON.stringify(url)}; it is as http://127.0.0.1:8787.`)
  }
  if (named === undefined && !(await answersAsSluice(url, clock))) return undefined
  return new ServerCaller({ url, key: keyOf(where) })
}

/** Where the configuration itself says that it listens. */
async function serverOf({ listen }: Configured, where: Where): Promise<ServerCaller | undefined> {
  const url = urlOf(listen)
  if (url === undefined || !(await answersAsSluice(url, where.clock))) return undefined
  return new ServerCaller({ url, key: keyOf(where) })
}

function urlOf({ port, host, tls }: ListenOptions): string | undefined {
  if (port === undefined || port === 0) return undefined
  const isEverywhere = host === undefined || host === '0.0.0.0' || host === '::'
  return `${tls === undefined ? 'http' : 'https'}://${isEverywhere ? '127.0.0.1' : host}:${port}`
}

function keyOf({ key, env }: Where): string | undefined {
  return key ?? env['SLUICE_KEY']
}

/** Says what went wrong and what to do, and how the program ends by it. */
export function ended(out: Output, answer: Exclude<Answer, { readonly kind: 'done' }>): Exit {
  if (answer.kind === 'unreached') {
    out.note(`${answer.why} Start the server with sluice start, or say where it is with --url.`)
    return EXIT.unreached
  }
  const { problem } = answer
  if (out.asJson) out.answer(problem)
  out.note(`${problem.code}: ${problem.detail} ${problem.fix}`)
  return exitOf(problem.code, problem.status)
}

export function exitOf(code: string, status: number): Exit {
  if (code === 'STORE_IN_USE' || code === 'CONFIG_MISSING') return EXIT.unreached
  if (status === 404) return EXIT.missing
  if (status === 401 || status === 403) return EXIT.refused
  return status === 400 ? EXIT.usage : EXIT.failed
}
