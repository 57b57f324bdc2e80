// Too much is asked at once: who is told so is told when to come again.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'

export class CallLater extends SluiceError {
  readonly after: Millis

  constructor(what: string, after: Millis) {
    super('TOO_MANY_CALLS', what)
    this.after = after
  }
}
