// The checks of `sluice doctor`: each examines one part of the set-up and returns its state and the fix.
import type { EncryptionState } from '../admin/encryption.ts'
import { SluiceError } from '../errors.ts'
import type { StoreDurability } from '../admin/stored-events.ts'
import type { ListenOptions } from '../http/server.ts'
import type { ApiClient, FailedResult, UnreachableApi } from './api-client.ts'
import { callApi, type CommandContext } from './command.ts'
import { findConfigPath, loadConfig } from './config-file.ts'
import { useDevKey } from './dev-key.ts'
import { formatCount, formatDuration } from './output.ts'

/** `look` means: it works, but needs attention. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'look' | 'wrong'
  readonly what: string
  /** The fix. */
  readonly fix?: string
}

/** A smaller offset may just be the round trip. */
const MAX_CLOCK_OFFSET = 2_000

export async function runChecks(context: CommandContext): Promise<readonly Check[]> {
  const { config, exposure } = await checkConfiguration(context)
  const server = await checkServer(context)
  const caller = await findApi(context)
  // The reason is already reported: the configuration does not load, or the server is that of another app.
  if (caller?.kind === 'none' || (caller === undefined && config.state === 'wrong')) return [config, server]
  const store = await checkStore(context)
  const checks = [config, server, ...store]
  // The other checks read the store, so they are skipped if it cannot be opened.
  if (store.some(({ state }) => state === 'wrong')) return checks
  return [
    ...checks,
    await checkKeys(context, exposure),
    await checkEncryption(context),
    await checkItems(context, '/v1/sources', checkUnverifiedSources),
    await checkItems(context, '/v1/limits', checkLimits, { limit: '1000' }),
    await checkItems(context, '/v1/alerts', checkAlerts),
    await checkAudit(context),
  ]
}

/** Who may call the admin API without a key while no key exists. */
type Exposure = 'nobody' | 'this machine' | 'proxies'

interface Configuration {
  readonly config: Check
  readonly exposure: Exposure
}

async function checkConfiguration({ target }: CommandContext): Promise<Configuration> {
  try {
    const file = findConfigPath(target.folder, target.config)
    // The app takes its key when it is loaded, and the checks after this one use the same app.
    useDevKey(target.folder)
    const { app, listen } = await loadConfig(file)
    const exposure = app.productionSetup().isAdminOpen ? exposureOf(listen) : 'nobody'
    return { config: { name: 'configuration', state: 'ok', what: `${file} loads.` }, exposure }
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const isElsewhere = error.code === 'CONFIG_MISSING' && (target.url ?? target.env['SLUICE_URL']) !== undefined
    const state = isElsewhere ? 'look' : 'wrong'
    return { config: { name: 'configuration', state, what: error.message }, exposure: 'nobody' }
  }
}

async function checkServer(context: CommandContext): Promise<Check> {
  const name = 'server'
  const caller = await findApi(context)
  if (caller?.kind === 'none') {
    const { why, fix } = (await caller.call({ method: 'GET', path: '/v1/store' })) as UnreachableApi
    return { name, state: 'wrong', what: why, ...(fix !== undefined && { fix }) }
  }
  if (caller?.kind !== 'server') {
    const fix = 'Start one with sluice start, or pass --url if it runs elsewhere.'
    return { name, state: 'look', what: 'No server is running.', fix }
  }
  try {
    const response = await fetch(`${caller.location}/readyz`)
    const { ready = false, why = `it returned ${response.status}` } = (await response.json()) as Readiness
    if (ready) return { name, state: 'ok', what: `${caller.location} is ready.` }
    return { name, state: 'wrong', what: `${caller.location} is not ready: ${why}`, fix: 'See its log.' }
  } catch {
    const fix = 'Compare --url or SLUICE_URL with the address that sluice start prints.'
    return { name, state: 'wrong', what: `${caller.location} responds, but it is not a Sluice server.`, fix }
  }
}

/** The check of the configuration reports why there is no API. */
async function findApi({ connect }: CommandContext): Promise<ApiClient | undefined> {
  try {
    return await connect()
  } catch (error) {
    if (error instanceof SluiceError) return undefined
    throw error
  }
}

interface Readiness {
  readonly ready?: boolean
  readonly why?: string
}

async function checkStore(context: CommandContext): Promise<readonly Check[]> {
  const sent = context.clock.now()
  const answer = await readStoreDurability(context)
  const received = context.clock.now()
  if ('name' in answer) return [answer]
  const safe: Check = answer.durable
    ? { name: 'store', state: 'ok', what: `Acknowledged events survive a crash: ${answer.because}.` }
    : {
        name: 'store',
        state: 'wrong',
        what: `Acknowledged events do not survive a crash: ${answer.because}.`,
        fix: "Set the option store of the app to 'sqlite:sluice.db'.",
      }
  const offset = Math.abs(answer.now - (sent + received) / 2)
  const isFar = offset > MAX_CLOCK_OFFSET
  const clock: Check = {
    name: 'clock',
    state: isFar ? 'wrong' : 'ok',
    what: `The clocks of this machine and of the store differ by ${isFar ? '' : 'less than '}${formatDuration(isFar ? offset : MAX_CLOCK_OFFSET)}.`,
    ...(isFar && { fix: 'Synchronize both clocks with NTP: wrong clocks make signed timestamps invalid.' }),
  }
  return [safe, clock]
}

async function readStoreDurability(context: CommandContext): Promise<StoreDurability | Check> {
  try {
    const answer = await callApi(context, { method: 'GET', path: '/v1/store' })
    if (answer.kind === 'done') return answer.value as StoreDurability
    const isKey = answer.kind === 'problem' && answer.problem.code.startsWith('KEY_')
    return failedCheck(isKey ? 'keys' : 'store', answer)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    return { name: 'store', state: 'wrong', what: error.message }
  }
}

type Items = readonly Readonly<Record<string, unknown>>[]

async function checkItems(
  context: CommandContext,
  path: string,
  judge: (items: Items) => Check,
  query: Readonly<Record<string, string>> = {},
): Promise<Check> {
  const answer = await callApi(context, { method: 'GET', path, query })
  if (answer.kind === 'done') return judge((answer.value as { readonly items: Items }).items)
  return failedCheck(path, answer)
}

function failedCheck(name: string, answer: FailedResult): Check {
  if (answer.kind === 'unreached') {
    return { name, state: 'wrong', what: answer.why, fix: answer.fix ?? 'Start it with sluice start.' }
  }
  const { code, detail, fix } = answer.problem
  return { name, state: 'wrong', what: `${code}: ${detail}`, fix }
}

const LOOPBACK = /^(?:localhost|127\.[\d.]+|::1)$/

/** A proxy on the same machine may look like a local caller. */
function exposureOf({ host = '127.0.0.1', trustProxy = [] }: ListenOptions): Exposure {
  return LOOPBACK.test(host) && trustProxy.length === 0 ? 'this machine' : 'proxies'
}

const WITHOUT_KEY: Readonly<Record<Exposure, string>> = {
  nobody: 'There is no key yet: the admin API rejects every call.',
  'this machine': 'There is no key yet: the admin API accepts calls from this machine.',
  proxies:
    'There is no key yet: the admin API accepts calls from this machine, including calls that a proxy on this machine forwards.',
}

async function checkKeys(context: CommandContext, ofFile: Exposure): Promise<Check> {
  const isServer = (await findApi(context))?.kind === 'server'
  return checkItems(context, '/v1/keys', (items) => {
    if (items.length > 0) return { name: 'keys', state: 'ok', what: `${formatCount(items.length, 'API key')}.` }
    // A server that lists no keys has answered a call without one: it is open, e.g. under `sluice dev`, whatever the file says.
    const exposure = isServer && ofFile === 'nobody' ? 'this machine' : ofFile
    const state = exposure === 'proxies' ? 'wrong' : 'look'
    return {
      name: 'keys',
      state,
      what: WITHOUT_KEY[exposure],
      fix: 'Create one with sluice keys create <name> --role=operate.',
    }
  })
}

/** With a wrong key everything starts, but deliveries and encrypted events fail. */
async function checkEncryption(context: CommandContext): Promise<Check> {
  const name = 'encryption'
  const answer = await callApi(context, { method: 'GET', path: '/v1/encryption' })
  if (answer.kind !== 'done') return failedCheck(name, answer)
  const { key, documents, unreadable } = answer.value as EncryptionState
  if (unreadable.length === 0) {
    const what =
      key === ''
        ? 'There is no encryption key, and nothing is encrypted.'
        : `The key reads ${formatCount(documents, 'encrypted document')}.`
    return { name, state: 'ok', what }
  }
  const fix = 'Set SLUICE_ENCRYPTION_KEY to the key that encrypted it, or append that key after a comma.'
  return { name, state: 'wrong', what: `No encryption key reads ${unreadable.join(', ')}.`, fix }
}

function checkUnverifiedSources(items: Items): Check {
  const open = items.filter(({ scheme }) => scheme === 'none').map(({ name }) => String(name))
  if (open.length === 0) return checkDeclared('sources', items.length, 'Declare a source with app.source')
  const fix = 'Configure a secret for each source, and the same secret at its sender.'
  return { name: 'sources', state: 'look', what: `Anyone can send to ${open.join(', ')}.`, fix }
}

/** Limits per key, `<limit>/<key>`, are declared with their parent. */
function checkLimits(items: Items): Check {
  const own = items.filter((limit) => limit['declared'] === true && !String(limit['name']).includes('/'))
  return checkDeclared('limits', own.length, 'Declare a limit with app.limit to keep calls under a rate')
}

function checkAlerts(items: Items): Check {
  const name = 'alerts'
  const broken = items.filter((alert) => alert['broken'] !== undefined)
  if (broken.length > 0) {
    const what = broken.map((alert) => `${String(alert['name'])} throws: ${String(alert['broken'])}`).join(' ')
    return {
      name,
      state: 'look',
      what,
      fix: 'Correct the function when of the alert; until then, the alert notifies nobody.',
    }
  }
  const raised = items
    .filter(({ state }) => state === 'raised')
    .map((alert) => `${String(alert['name'])}: ${String(alert['text'])}`)
  if (raised.length === 0)
    return checkDeclared(name, items.length, 'Declare an alert with app.alert to be notified when something is wrong')
  return { name, state: 'look', what: raised.join(' '), fix: 'Run sluice alerts, then sluice explain.' }
}

function checkDeclared(name: string, howMany: number, why: string): Check {
  if (howMany > 0) return { name, state: 'ok', what: `${howMany} declared.` }
  return { name, state: 'look', what: 'None are declared.', fix: `${why}.` }
}

async function checkAudit(context: CommandContext): Promise<Check> {
  const answer = await callApi(context, { method: 'GET', path: '/v1/audit/verify' })
  if (answer.kind !== 'done') return { name: 'audit', state: 'look', what: 'The audit log could not be read.' }
  const { kind, entries } = answer.value as { readonly kind: string; readonly entries: number }
  if (kind === 'whole')
    return { name: 'audit', state: 'ok', what: `The chain is whole: ${formatCount(entries, 'entry', 'entries')}.` }
  return { name: 'audit', state: 'wrong', what: 'An entry was changed or is missing.', fix: 'Run sluice audit verify.' }
}
