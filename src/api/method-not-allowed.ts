// `MethodNotAllowedError` is a 405 that carries the methods which the path does take.
import { SluiceError } from '../errors.ts'

export class MethodNotAllowedError extends SluiceError {
  /** The value of the `allow` header. */
  readonly allow: string

  constructor(methods: readonly string[]) {
    const allow = methods.join(', ')
    super('METHOD_NOT_ALLOWED', `This path supports only ${allow}.`)
    this.allow = allow
  }
}
