// What sources received and refused lately, how far a refused request came, and a signed sample request.
import { randomUUID } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { StatsRecorder } from '../observe/stats/recorder.ts'
import { MINUTE } from '../observe/stats/rollups.ts'
import type { ProblemCode } from '../receive/problem.ts'
import type { RefusedRequest } from '../receive/refused-requests.ts'
import type { Sources, SourceView } from './sources.ts'

export interface SourceActivity extends SourceView {
  readonly verified: boolean
  readonly receivedHour: number
  /** Among the last 50 refused requests. */
  readonly refusedHour: number
  readonly byReason: Readonly<Partial<Record<ProblemCode, number>>>
  /** Within the last day: the minute in which the latest event arrived. */
  readonly lastReceived: Millis | undefined
}

export interface SourceActivityDependencies {
  readonly sources: Pick<Sources, 'list' | 'declared' | 'refused'>
  readonly recorder: Pick<StatsRecorder, 'readSince'>
  /** The time of the store. */
  readonly now: () => Millis
}

const HOUR: Millis = 60 * MINUTE
const DAY: Millis = 24 * HOUR

export async function readSourceActivity(deps: SourceActivityDependencies): Promise<readonly SourceActivity[]> {
  const { sources, recorder } = deps
  const now = deps.now()
  const received = new Map<string, { hour: number; last: Millis }>()
  for (const { at, span, kinds } of await recorder.readSince(now - DAY)) {
    for (const [source, , [count = 0]] of kinds) {
      const known = received.get(source) ?? { hour: 0, last: 0 }
      received.set(source, known)
      if (at + span > now - HOUR) known.hour += count
      if (count > 0) known.last = Math.max(known.last, at)
    }
  }
  return Promise.all(
    sources.list().map(async (view): Promise<SourceActivity> => {
      const refused = (await sources.refused(view.name)).filter(({ at }) => at >= now - HOUR)
      const byReason = Map.groupBy(refused, ({ code }) => code)
      const { hour = 0, last = 0 } = received.get(view.name) ?? {}
      return {
        ...view,
        verified: sources.declared(view.name)?.source.verify !== 'none',
        receivedHour: hour,
        refusedHour: refused.length,
        byReason: Object.fromEntries(Array.from(byReason, ([code, all]) => [code, all.length])),
        lastReceived: last === 0 ? undefined : last,
      }
    }),
  )
}

type CheckName = 'path' | 'size' | 'header' | 'signature' | 'time' | 'read' | 'stored'

/** `RequestCheck` is one step that a request passes on its way into the store. */
export interface RequestCheck {
  readonly step: CheckName
  readonly state: 'passed' | 'failed' | 'skipped'
  /** Why it failed; empty otherwise. */
  readonly text: string
}

const CHECKS: readonly CheckName[] = ['path', 'size', 'header', 'signature', 'time', 'read', 'stored']

const FAILED_CHECKS: Readonly<Partial<Record<ProblemCode, CheckName>>> = {
  BODY_TOO_LARGE: 'size',
  BODY_CUT_OFF: 'size',
  ENCODING_NOT_ALLOWED: 'size',
  ENCODING_BROKEN: 'size',
  SIGNATURE_MISSING: 'header',
  CREDENTIALS_MISSING: 'header',
  SIGNATURE_WRONG: 'signature',
  CREDENTIALS_WRONG: 'signature',
  TIMESTAMP_MISSING: 'time',
  TIMESTAMP_OLD: 'time',
  TIMESTAMP_IN_FUTURE: 'time',
  CONTENT_TYPE_WRONG: 'read',
  BODY_NOT_UNDERSTOOD: 'read',
  TOO_MANY_EVENTS: 'read',
  EVENT_INVALID: 'read',
  BUSY: 'stored',
  STORE_FAILED: 'stored',
  APP_STOPPED: 'stored',
}

/** `listChecks` says how far a refused request came. */
export function listChecks({ code, what }: Pick<RefusedRequest, 'code' | 'what'>): readonly RequestCheck[] {
  const failed = CHECKS.indexOf(FAILED_CHECKS[code] ?? 'path')
  return CHECKS.map((step, n) => {
    if (n === failed) return { step, state: 'failed', text: what }
    return { step, state: n < failed ? 'passed' : 'skipped', text: '' }
  })
}

export interface SampleRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body64: string
  /** The same as a command. */
  readonly curl: string
}

/** `createSample` signs a test request as its provider would. It rejects schemes that send the secret itself. */
export function createSample(
  { sources, now }: Pick<SourceActivityDependencies, 'sources' | 'now'>,
  name: string,
  origin: string,
): SampleRequest | undefined {
  const declared = sources.declared(name)
  if (declared === undefined) return undefined
  const { source, path, suffixes = ['test'] } = declared
  const secrets = source.secrets === 'by-handshake' ? [] : source.secrets
  const url = new URL(path.endsWith('/*') ? path.slice(0, -1) + suffixes[0] : path, origin)
  const secret = secrets[0] ?? ''
  if (source.secrets === 'by-handshake' || source.sign === undefined) throw noSample(name, 'cannot be signed here')
  const asked = { type: undefined, data: undefined, id: randomUUID(), now: now(), secret, url }
  const signed = source.sign(asked)
  if (typeof signed === 'string') throw noSample(name, 'cannot be signed here')
  const body = Buffer.from(signed.body)
  const sent = `${signed.url.href}\n${JSON.stringify(signed.headers)}\n${body.toString()}`
  if (secrets.some((one) => spellingsOf(one).some((text) => sent.includes(text))))
    throw noSample(name, 'sends its secret')
  const method = source.methods?.[0] ?? 'POST'
  const headers = Object.entries(signed.headers).map(([header, value]) => ` -H ${quote(`${header}: ${value}`)}`)
  const curl = `curl -X ${method} ${quote(signed.url.href)}${headers.join('')} --data-binary ${quote(body.toString())}`
  return { method, url: signed.url.href, headers: signed.headers, body64: body.toString('base64'), curl }
}

/** How a secret may be written in a request. */
function spellingsOf(secret: string): readonly string[] {
  return [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)]
}

function noSample(name: string, why: string): SluiceError {
  const fix = `Run \`sluice send ${name}\` where the configuration is.`
  return new SluiceError('CONFLICT', `A request of this scheme ${why}.`, undefined, fix)
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
