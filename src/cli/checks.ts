// What can be wrong with the set-up of an app, looked at one after the other: each says how it is, and what to do.
import { SluiceError } from '../errors.ts'
import type { ListenOptions } from '../http/server.ts'
import type { Caller, Unreached } from './caller.ts'
import { ask, type Scene } from './command.ts'
import { configFile, configured } from './config-file.ts'
import { many, span } from './output.ts'

/** `look`: it works, but somebody should know. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'look' | 'wrong'
  readonly what: string
  /** What to do. */
  readonly fix?: string
}

export interface StoreSafety {
  readonly durable: boolean
  readonly because: string
  readonly bytes: number
  readonly now: number
}

/** Less is the way there and back. */
const OFFSET_MOST = 2_000

export async function allChecks(scene: Scene): Promise<readonly Check[]> {
  const { config, listen } = await configuration(scene)
  const server = await reachability(scene)
  const store = await storeChecks(scene)
  const checks = [config, server, ...store]
  // Of a store that cannot be opened nothing more can be asked.
  if (store.some(({ state }) => state === 'wrong')) return checks
  return [
    ...checks,
    await keysCheck(scene, listen),
    await count(scene, '/v1/sources', unverified),
    await count(scene, '/v1/limits', limitsCheck, { limit: '1000' }),
    await count(scene, '/v1/alerts', alertsCheck),
    await auditCheck(scene),
  ]
}

async function configuration({ where }: Scene): Promise<{ readonly config: Check; readonly listen: ListenOptions }> {
  try {
    const file = configFile(where.folder, where.config)
    const { listen } = await configured(file)
    return { config: { name: 'configuration', state: 'ok', what: `${file} loads.` }, listen }
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const isElsewhere = error.code === 'CONFIG_MISSING' && (where.url ?? where.env['SLUICE_URL']) !== undefined
    const state = isElsewhere ? 'look' : 'wrong'
    return { config: { name: 'configuration', state, what: error.message }, listen: {} }
  }
}

async function reachability(scene: Scene): Promise<Check> {
  const name = 'server'
  const caller = await found(scene)
  if (caller?.kind === 'none') {
    const { why, fix } = (await caller.call({ method: 'GET', path: '/v1/store' })) as Unreached
    return { name, state: 'wrong', what: why, ...(fix !== undefined && { fix }) }
  }
  if (caller?.kind !== 'server') {
    const fix = 'sluice start begins one; --url names one elsewhere.'
    return { name, state: 'look', what: 'No server answers.', fix }
  }
  try {
    const response = await fetch(`${caller.where}/readyz`)
    const { ready = false, why = `it answered ${response.status}` } = (await response.json()) as Readiness
    if (ready) return { name, state: 'ok', what: `${caller.where} is ready.` }
    return { name, state: 'wrong', what: `${caller.where} is not ready: ${why}`, fix: 'See its log.' }
  } catch {
    const fix = 'Compare --url or SLUICE_URL with what sluice start says.'
    return { name, state: 'wrong', what: `${caller.where} does not answer as Sluice does.`, fix }
  }
}

/** Why there is nobody is said by the check of the configuration. */
async function found({ api }: Scene): Promise<Caller | undefined> {
  try {
    return await api()
  } catch (error) {
    if (error instanceof SluiceError) return undefined
    throw error
  }
}

interface Readiness {
  readonly ready?: boolean
  readonly why?: string
}

async function storeChecks(scene: Scene): Promise<readonly Check[]> {
  const sent = scene.clock.now()
  const answer = await storeOf(scene)
  const received = scene.clock.now()
  if ('name' in answer) return [answer]
  const safe: Check = answer.durable
    ? { name: 'store', state: 'ok', what: `What is acknowledged survives a crash: ${answer.because}.` }
    : {
        name: 'store',
        state: 'wrong',
        what: `It does not survive a crash: ${answer.because}.`,
        fix: "Give the app store: 'sqlite:sluice.db'.",
      }
  const offset = Math.abs(answer.now - (sent + received) / 2)
  const isFar = offset > OFFSET_MOST
  const clock: Check = {
    name: 'clock',
    state: isFar ? 'wrong' : 'ok',
    what: `The clock here is ${isFar ? '' : 'less than '}${span(isFar ? offset : OFFSET_MOST)} from that of the store.`,
    ...(isFar && { fix: 'Set both clocks by NTP: signed times are refused when they are off.' }),
  }
  return [safe, clock]
}

async function storeOf(scene: Scene): Promise<StoreSafety | Check> {
  try {
    const answer = await ask(scene, { method: 'GET', path: '/v1/store' })
    if (answer.kind === 'done') return answer.value as StoreSafety
    const what = answer.kind === 'problem' ? `${answer.problem.code}: ${answer.problem.detail}` : answer.why
    const fix = answer.kind === 'problem' ? answer.problem.fix : (answer.fix ?? 'Start it with sluice start.')
    return { name: 'store', state: 'wrong', what, fix }
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    return { name: 'store', state: 'wrong', what: error.message }
  }
}

type Items = readonly Readonly<Record<string, unknown>>[]

async function count(
  scene: Scene,
  path: string,
  judge: (items: Items) => Check,
  query: Readonly<Record<string, string>> = {},
): Promise<Check> {
  const answer = await ask(scene, { method: 'GET', path, query })
  if (answer.kind === 'done') return judge((answer.value as { readonly items: Items }).items)
  const what = answer.kind === 'problem' ? `${answer.problem.code}: ${answer.problem.detail}` : answer.why
  return { name: path, state: 'wrong', what, ...(answer.kind === 'problem' && { fix: answer.problem.fix }) }
}

const LOOPBACK = /^(?:localhost|127\.[\d.]+|::1)$/

function keysCheck(scene: Scene, { host = '127.0.0.1', trustProxy = [] }: ListenOptions): Promise<Check> {
  const isOpen = !LOOPBACK.test(host) || trustProxy.length > 0
  return count(scene, '/v1/keys', (items) => {
    if (items.length > 0) return { name: 'keys', state: 'ok', what: `${many(items.length, 'key')} to the API.` }
    const fix = 'sluice keys make <name> --role=operate gives one.'
    if (isOpen) return { name: 'keys', state: 'wrong', what: `It listens on ${host}, and nobody has a key.`, fix }
    return { name: 'keys', state: 'look', what: 'None: the API answers whoever is on the machine itself.', fix }
  })
}

function unverified(items: Items): Check {
  const open = items.filter(({ scheme }) => scheme === 'none').map(({ name }) => String(name))
  if (open.length === 0) return declared('sources', items.length, 'app.source is a way in')
  const fix = 'Give each a secret that its sender has.'
  return { name: 'sources', state: 'look', what: `Everybody can send to ${open.join(', ')}.`, fix }
}

/** Those that keys have of their own, `<limit>/<key>`, are declared with it. */
function limitsCheck(items: Items): Check {
  const own = items.filter((limit) => limit['declared'] === true && !String(limit['name']).includes('/'))
  return declared('limits', own.length, 'app.limit keeps calls under a rate')
}

function alertsCheck(items: Items): Check {
  const name = 'alerts'
  const broken = items.filter((alert) => alert['broken'] !== undefined)
  if (broken.length > 0) {
    const what = broken.map((alert) => `${String(alert['name'])} throws: ${String(alert['broken'])}`).join(' ')
    return { name, state: 'look', what, fix: 'Mend its when: until then nobody is told.' }
  }
  const raised = items
    .filter(({ state }) => state === 'raised')
    .map((alert) => `${String(alert['name'])}: ${String(alert['text'])}`)
  if (raised.length === 0) return declared(name, items.length, 'app.alert tells people when something is wrong')
  return { name, state: 'look', what: raised.join(' '), fix: 'sluice alerts, then sluice explain.' }
}

function declared(name: string, howMany: number, why: string): Check {
  if (howMany > 0) return { name, state: 'ok', what: `${howMany} declared.` }
  return { name, state: 'look', what: 'None are declared.', fix: `${why}.` }
}

async function auditCheck(scene: Scene): Promise<Check> {
  const answer = await ask(scene, { method: 'GET', path: '/v1/audit/verify' })
  if (answer.kind !== 'done') return { name: 'audit', state: 'look', what: 'The audit log could not be read.' }
  const { kind, entries } = answer.value as { readonly kind: string; readonly entries: number }
  if (kind === 'whole')
    return { name: 'audit', state: 'ok', what: `The chain is whole: ${many(entries, 'entry', 'entries')}.` }
  return { name: 'audit', state: 'wrong', what: 'An entry was changed or is missing.', fix: 'sluice audit verify.' }
}
