// The contract between the proofs in test/proofs/ and the command that runs them.

/** `Proof` is a module `test/proofs/<name>.ts`. */
export interface Proof {
  /** The claim, in a sentence. */
  readonly title: string
  run(context: ProofContext): Promise<Figure>
}

export interface ProofContext {
  /** All random choices of the proof come from this number. */
  readonly seed: number
  /** Arguments of the command line that the command itself does not use. */
  readonly args: readonly string[]
  /** Shows the progress: a fraction, or a text. */
  progress(how: number | string): void
  /** What the last checkpoint of an interrupted run saved, if there was one. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the proof knows what it saved
  resume<State>(): State | undefined
  /** Saves progress as JSON. After an interruption, the same command continues from here. */
  checkpoint(state: unknown): void
}

export interface Figure {
  /** Whether the figure supports the claim. */
  readonly holds: boolean
  /** What was measured, as JSON. */
  readonly values: Readonly<Record<string, unknown>>
}
