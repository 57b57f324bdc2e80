// What is kept with a run from one of its attempts to the next, in the store's own text.

/** What is kept from one `again` to the next: the handler's state, and how many events it has published so far. */
export interface Kept {
  readonly published: number
  readonly state: unknown
  /** The limit whose slot was too far away; only for whoever asks why the run waits. */
  readonly putOffBy?: string
  /** It was put off after it had made calls: those were in vain, and must not be so for ever (M6). */
  readonly midway?: boolean
}

const STATE_BYTES_MAX = 262_144

export function keptIn(state64: string): Kept {
  if (state64 === '') return { published: 0, state: undefined }
  return JSON.parse(Buffer.from(state64, 'base64').toString()) as Kept
}

export function keptAs({ published, state, ...ours }: Kept): string {
  const text = JSON.stringify({ published, state })
  if (text.length > STATE_BYTES_MAX) throw new RangeError(`again.state is longer than ${STATE_BYTES_MAX} characters.`)
  return Buffer.from(JSON.stringify({ published, state, ...ours })).toString('base64')
}

/** The run has begun again since: it is no longer put off. */
export function notPutOff(state64: string): string {
  const { putOffBy, ...kept } = keptIn(state64)
  return putOffBy === undefined ? state64 : keptAs(kept)
}
