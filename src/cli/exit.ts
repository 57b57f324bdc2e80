// What the program ends with. Scripts go by these numbers: they are documented in docs/cli.md and keep their meaning.

interface Exits {
  readonly done: 0
  readonly failed: 1
  /** It was asked something it does not understand. */
  readonly usage: 2
  readonly missing: 3
  /** By the key, or by its role. */
  readonly refused: 4
  /** Neither a server nor a store that can be opened. */
  readonly unreached: 5
}

export const EXIT: Exits = { done: 0, failed: 1, usage: 2, missing: 3, refused: 4, unreached: 5 }

export type Exit = Exits[keyof Exits]
