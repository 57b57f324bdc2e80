// Checks of options: an error names the option, the rule and what the caller passed.
import { SluiceError } from '../errors.ts'
import { isObject, describeKind } from './arguments.ts'

export function invalidOption(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}

export function assertWholeNumber(value: number, least: number, option: string, hint = ''): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw invalidOption(`${option} must be a whole number of at least ${least}${hint}; got ${String(value)}.`)
}

/** `assertKnownOptions` rejects unknown options, so that a misspelled option is an error and not ignored. `where` precedes
    the option's name in the message, e.g. `new Sluice: `. */
export function assertKnownOptions<Options extends object>(
  options: Options,
  known: readonly (keyof Options)[] | ReadonlySet<string>,
  where: string,
): void {
  if (!isObject(options)) {
    const subject = where.endsWith('.') ? where.slice(0, -1) : `${where}the options`
    throw invalidOption(`${subject} must be an object; got ${describeKind(options)}.`)
  }
  const names: readonly PropertyKey[] = [...known]
  const unknown = Object.keys(options).find((option) => !names.includes(option))
  if (unknown === undefined) return
  throw invalidOption(`${where}${unknown} is not an option. The options are ${names.join(', ')}.`)
}
