// There is something at the address, but not for this method: who is told so is told which there are.
import { SluiceError } from '../errors.ts'

export class MethodWrong extends SluiceError {
  /** As the header `allow` has them. */
  readonly allow: string

  constructor(methods: readonly string[]) {
    const allow = methods.join(', ')
    super('METHOD_WRONG', `This address takes ${allow}.`)
    this.allow = allow
  }
}
