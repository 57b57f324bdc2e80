// Chance from a seed: the same seed gives the same users, so that what was seen once can be looked at again.

export interface Chance {
  /** In [0, 1). */
  readonly unit: () => number
  /** A whole number, both ends included. */
  readonly between: (least: number, most: number) => number
  /** True in this share of cases. */
  readonly hits: (share: number) => boolean
}

/** Mulberry32: 32 bits of state are plenty for an example. */
export function chance(seed: number): Chance {
  let state = seed >>> 0
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    unit,
    between: (least, most) => least + Math.floor(unit() * (most - least + 1)),
    hits: (share) => unit() < share,
  }
}
