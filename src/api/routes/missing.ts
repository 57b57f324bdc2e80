// What is asked for is not there: said the same way of everything.
import { SluiceError } from '../../errors.ts'

export function missing(what: string, name: string): SluiceError {
  return new SluiceError('NOT_FOUND', `There is no ${what} ${JSON.stringify(name.slice(0, 200))}.`)
}
