// `StoredRunState` is what the store keeps with a run between attempts: the handler's state and how many events it has published.

export interface StoredRunState {
  readonly published: number
  readonly state: unknown
  /** The limit whose slot was too far away. Only `explain` reads it. */
  readonly putOffBy?: string
  /** Whether the run was deferred after it had made calls. It must not repeat them for ever without progress (M6). */
  readonly midway?: boolean
}

const STATE_BYTES_MAX = 262_144

export function parseRunState(state64: string): StoredRunState {
  if (state64 === '') return { published: 0, state: undefined }
  return JSON.parse(Buffer.from(state64, 'base64').toString()) as StoredRunState
}

export function serializeRunState({ published, state, ...ours }: StoredRunState): string {
  const text = JSON.stringify({ published, state })
  if (text.length > STATE_BYTES_MAX)
    throw new RangeError(`snooze.state must have at most ${STATE_BYTES_MAX} characters as JSON; got ${text.length}.`)
  return Buffer.from(JSON.stringify({ published, state, ...ours })).toString('base64')
}

/** `clearDeferral` removes the deferral of a run that has started again. */
export function clearDeferral(state64: string): string {
  const { putOffBy, ...kept } = parseRunState(state64)
  return putOffBy === undefined ? state64 : serializeRunState(kept)
}
