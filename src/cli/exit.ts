// The exit codes. Scripts depend on these numbers: docs/cli.md documents them and they keep their meaning.

interface ExitCodes {
  readonly done: 0
  readonly failed: 1
  /** The arguments are wrong. */
  readonly usage: 2
  readonly missing: 3
  /** The key or its role does not allow the call. */
  readonly refused: 4
  /** Neither a server nor a store can be reached. */
  readonly unreached: 5
}

export const EXIT: ExitCodes = { done: 0, failed: 1, usage: 2, missing: 3, refused: 4, unreached: 5 }

export type ExitCode = ExitCodes[keyof ExitCodes]
