// What a proof is: the contract between the modules in test/proofs/ and the command that runs them.

/** A module `test/proofs/<name>.ts`. */
export interface Proof {
  /** The claim, in a sentence. */
  readonly title: string
  run(context: ProofContext): Promise<Figure>
}

export interface ProofContext {
  /** All chance in the proof comes from this number. */
  readonly seed: number
  /** Arguments of the command line that the command itself has no use for. */
  readonly args: readonly string[]
  /** Shows how far it is: a part of one, or a text. */
  progress(how: number | string): void
  /** What the last checkpoint of an interrupted run saved, if there was one. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the proof knows what it saved
  resume<State>(): State | undefined
  /** Saves progress, as JSON; the same command goes on from here after an interruption. */
  checkpoint(state: unknown): void
}

export interface Figure {
  /** Whether the figure bears the claim out. */
  readonly holds: boolean
  /** What was measured, as JSON. */
  readonly values: Readonly<Record<string, unknown>>
}
