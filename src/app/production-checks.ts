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

/** `forced` contains the checks that the operator switched off by an explicit option. */
export function assertProductionReady(setUp: ProductionSetup, forced: { readonly allowLoopback: boolean }): void {
  if (setUp.hasDeliveries && !setUp.hasKey) {
    throw missingKey('CONFIG_INVALID', 'for an app with a delivery, because the secrets of endpoints are encrypted')
  }
  if (setUp.allowLoopback && !forced.allowLoopback) {
    throw new SluiceError(
      'CONFIG_INVALID',
      'delivery.allowLoopback must be false in production; got true. Anyone who may register an endpoint could reach the services on this machine. Omit it, or pass --allow-loopback.',
    )
  }
}
