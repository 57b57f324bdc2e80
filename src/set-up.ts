// Whether an app may be let out into the world as it is set up. `sluice start` and `sluice work` ask; `sluice dev` need not.
import { SluiceError } from './errors.ts'
import { HOW_TO_GIVE_A_KEY } from './seal.ts'

export interface SetUp {
  /** Whether it has deliveries: the secrets of their endpoints are kept sealed. */
  readonly delivers: boolean
  readonly hasKey: boolean
  /** Whether endpoints may be on this machine. */
  readonly allowLoopback: boolean
}

export interface SetUpParts {
  readonly seal: { readonly hasKey: boolean }
  readonly settings: { readonly allowLoopback?: boolean } | undefined
  /** Its epoch is endless while nothing is delivered. */
  readonly delivering: { readonly epoch: number }
}

export function setUpOf({ seal, settings, delivering }: SetUpParts): SetUp {
  return {
    delivers: delivering.epoch !== Infinity,
    hasKey: seal.hasKey,
    allowLoopback: settings?.allowLoopback === true,
  }
}

/** `forced` by whoever runs it: they say so in so many words. */
export function mustBeFit(setUp: SetUp, forced: { readonly allowLoopback: boolean }): void {
  if (setUp.delivers && !setUp.hasKey) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `there is a delivery, whose secrets are kept sealed, and no master key: ${HOW_TO_GIVE_A_KEY}.`,
    )
  }
  if (setUp.allowLoopback && !forced.allowLoopback) {
    throw new SluiceError(
      'CONFIG_INVALID',
      'delivery.allowLoopback is for development: who may register an endpoint could reach what listens on this machine. Leave it out, or say --allow-loopback.',
    )
  }
}
