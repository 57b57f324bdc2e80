// `unverified` accepts requests without proof, so anyone who knows the URL can send. It requires an explicit `verify:
// 'none'` (R3).
import { SluiceError } from '../errors.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { Source, SourceResponse } from '../receive/source.ts'
import { createNamedEventParser, NAMING_OPTIONS, type NamingOptions } from './event-names.ts'
import { signNamed } from './sign.ts'

export interface UnverifiedOptions extends NamingOptions {
  readonly verify: 'none'
  readonly answer?: SourceResponse
}

const KNOWN: ReadonlySet<string> = new Set<keyof UnverifiedOptions>(['verify', 'answer', ...NAMING_OPTIONS])

export function unverified(options: UnverifiedOptions): Source {
  assertKnownOptions(options, KNOWN, 'unverified: ')
  const { verify, answer } = options
  if (verify !== 'none') {
    throw new SluiceError(
      'CONFIG_INVALID',
      "unverified: verify must be 'none', because anyone who knows the URL can send.",
    )
  }
  return {
    scheme: 'none',
    secrets: [],
    verify,
    dedupeFor: '30d',
    events: createNamedEventParser('unverified', options),
    sign: (asked) => signNamed(asked, options),
    ...(answer !== undefined && { answer }),
  }
}
