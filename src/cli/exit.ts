// The exit codes. Scripts depend on these numbers: docs/cli.md documents them and they keep their meaning.
export const EXIT = {
  done: 0,
  failed: 1,
  /** The arguments are wrong. */
  usage: 2,
  missing: 3,
  /** The key or its role does not allow the call. */
  refused: 4,
  /** Neither a server nor a store can be reached. */
  unreached: 5,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
