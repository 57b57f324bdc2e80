// Rejects unknown options, so that a misspelled option is an error and not ignored.
import { SluiceError } from '../errors.ts'
import { isObject, describeKind } from './arguments.ts'

/** `assertKnownOptions` throws if an option is unknown. `where` precedes the option's name in the message, e.g. `new Sluice: `. */
export function assertKnownOptions(options: object, known: ReadonlySet<string>, where: string): void {
  if (!isObject(options))
    throw new SluiceError('CONFIG_INVALID', `${where}the options must be an object; got ${describeKind(options)}.`)
  const unknown = Object.keys(options).find((option) => !known.has(option))
  if (unknown === undefined) return
  throw new SluiceError(
    'CONFIG_INVALID',
    `${where}${unknown} is not an option. The options are ${[...known].join(', ')}.`,
  )
}
