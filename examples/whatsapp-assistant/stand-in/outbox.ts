// `Outbox` is what people have received from the assistant, whichever provider brought it.

export interface Sent {
  /** On the clock that only goes forward. */
  readonly at: number
  readonly line: string
  readonly to: string
  readonly text: string
  /** The run that sent it, where the provider takes such a mark. */
  readonly run: string
}

export class Outbox {
  readonly sent: Sent[] = []
  readonly typing: { readonly at: number; readonly id: string }[] = []
}
