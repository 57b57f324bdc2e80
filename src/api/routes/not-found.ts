// `notFound` builds the 404 of a missing object, in the same words for every kind.
import { SluiceError } from '../../errors.ts'

export function notFound(what: string, name: string): SluiceError {
  return new SluiceError('NOT_FOUND', `There is no ${what} ${JSON.stringify(name.slice(0, 200))}.`)
}
