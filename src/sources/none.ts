// Requests that prove nothing: whoever knows the address can send. Only for who says so in so many words (R3).
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { Source, SourceAnswer } from '../receive/source.ts'
import { eventsNamedBy, NAMING, typeAt, type NamingOptions } from './named-by.ts'

export interface UnverifiedOptions extends NamingOptions {
  readonly verify: 'none'
  readonly answer?: SourceAnswer
}

const KNOWN: ReadonlySet<string> = new Set<keyof UnverifiedOptions>(['verify', 'answer', ...NAMING])

export function unverified(options: UnverifiedOptions): Source {
  onlyKnown(options, KNOWN, 'unverified: ')
  const { verify, answer } = options
  if (verify !== 'none') {
    throw new SluiceError('CONFIG_INVALID', "unverified: say verify: 'none'; everybody who knows the address can send.")
  }
  return {
    scheme: 'none',
    secrets: [],
    verify,
    dedupeFor: '30d',
    sender: { proof: { kind: 'none' }, ...typeAt(options) },
    events: eventsNamedBy('unverified', options),
    ...(answer !== undefined && { answer }),
  }
}
