// `settingsFrom` reads the settings of the app from variables of the environment. The defaults are those of the design.
import type { Env } from '../kit/example.ts'

/** E.g. `30s`. */
type Setting = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

export interface Settings {
  readonly encryptionKey: string | undefined
  readonly discovery: Setting
  readonly batchInterval: Setting
  readonly maxEvents: number
  /** The delays between the attempts: twice as long each. */
  readonly retry: readonly Setting[]
  readonly requestTimeout: Setting
  readonly eventRetention: Setting
  readonly batchRetention: Setting
  /** In a minute, from one address and with one key. */
  readonly registrations: number
  readonly proof: 'none' | 'challenge'
  /** Whether subscribers on this machine may have http addresses. */
  readonly isDevelopment: boolean
}

export function settingsFrom(env: Env): Settings {
  const duration = (name: string, otherwise: Setting): Setting => {
    const given = env[name] ?? otherwise
    if (/^\d+(ms|s|m|h|d)$/.test(given)) return given as Setting
    throw new Error(`${name} must be a duration such as ${otherwise}; got ${given}.`)
  }
  const count = (name: string, otherwise: number, most: number): number => {
    const value = Number(env[name] ?? otherwise)
    if (Number.isInteger(value) && value >= 1 && value <= most) return value
    throw new Error(`${name} must be a whole number from 1 to ${most}; got ${env[name]}.`)
  }
  const proof = env['WEBHOOK_PROOF'] ?? 'none'
  if (proof !== 'none' && proof !== 'challenge')
    throw new Error(`WEBHOOK_PROOF must be none or challenge; got ${proof}.`)
  const [, first = '', unit = ''] = /^(\d+)(\w+)$/.exec(duration('RETRY_FIRST', '1m')) ?? []
  const attempts = count('MAX_ATTEMPTS', 5, 12)
  return {
    encryptionKey: env['SLUICE_ENCRYPTION_KEY'],
    discovery: duration('DISCOVERY_INTERVAL', '5m'),
    batchInterval: duration('BATCH_INTERVAL', '30s'),
    maxEvents: count('MAX_EVENTS_PER_BATCH', 1_000, 10_000),
    retry: Array.from({ length: attempts - 1 }, (_, n) => `${Number(first) * 2 ** n}${unit}` as Setting),
    requestTimeout: duration('REQUEST_TIMEOUT', '30s'),
    eventRetention: duration('EVENT_RETENTION', '7d'),
    batchRetention: duration('BATCH_RETENTION', '30d'),
    registrations: count('REGISTRATIONS_PER_MINUTE', 10, 100_000),
    proof,
    isDevelopment: env['NODE_ENV'] === 'development',
  }
}
