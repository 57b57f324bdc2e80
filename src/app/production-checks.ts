// `assertProductionReady` checks that an app is safe in production. `sluice start` and `sluice work` call it; `sluice dev` does not.
import { SluiceError } from '../errors.ts'
import { missingKey } from '../crypto/keyring.ts'

export interface ProductionSetup {
  /** Whether the app has deliveries, whose endpoint secrets must be encrypted. */
  readonly hasDeliveries: boolean
  readonly hasKey: boolean
  /** Whether deliveries may post to this machine. */
  readonly allowLoopback: boolean
  /** Whether calls from the same machine need no key, as long as no key exists. */
  readonly isAdminOpen: boolean
}

export interface ProductionOverrides {
  /** The operator switched this check off by an explicit option. */
  readonly allowLoopback: boolean
  /** The file in which `sluice dev` keeps a key, if there is one. */
  readonly devKeyFile?: string | undefined
}

export function assertProductionReady(setUp: ProductionSetup, forced: ProductionOverrides): void {
  if (setUp.hasDeliveries && !setUp.hasKey) {
    const purpose = 'for an app with a delivery, because the secrets of endpoints are encrypted'
    const file = forced.devKeyFile
    // With another key, the endpoints that were created under sluice dev could not be read.
    const fix =
      file === undefined
        ? undefined
        : `Set SLUICE_ENCRYPTION_KEY: to the key in ${file} for a store that sluice dev has used, otherwise to 32 random bytes as base64 (openssl rand -base64 32).`
    throw missingKey('CONFIG_INVALID', purpose, fix)
  }
  if (setUp.allowLoopback && !forced.allowLoopback) {
    throw new SluiceError(
      'CONFIG_INVALID',
      'delivery.allowLoopback must be false in production; got true. Anyone who may register an endpoint could reach the services on this machine. Omit it, or pass --allow-loopback.',
    )
  }
}
