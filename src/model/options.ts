// A slip of the pen must not become an option that is ignored: what is not known is refused, with what there is.
import { SluiceError } from '../errors.ts'
import { isObject, said } from './arguments.ts'

/** `where` is what the options are of, up to the name of the option. */
export function onlyKnown(options: object, known: ReadonlySet<string>, where: string): void {
  if (!isObject(options))
    throw new SluiceError('CONFIG_INVALID', `${where}the options are ${said(options)}; they are an object.`)
  const unknown = Object.keys(options).find((option) => !known.has(option))
  if (unknown === undefined) return
  throw new SluiceError('CONFIG_INVALID', `${where}${unknown} is no option; there are ${[...known].join(', ')}.`)
}
