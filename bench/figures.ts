// The few statistics that the benchmark needs. It uses medians, so that a single disturbed round decides nothing.

export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** The median of at least one value. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other)
  return { median: quantile(sorted, 0.5), least: quantile(sorted, 0), most: quantile(sorted, 1) }
}

/** Interpolates between the two nearest values, as is usual for a median. */
export function quantile(sorted: readonly number[], part: number): number {
  if (sorted.length === 0) throw new Error('There is no quantile of nothing.')
  const place = part * (sorted.length - 1)
  const below = sorted[Math.floor(place)] ?? 0
  const above = sorted[Math.ceil(place)] ?? 0
  return below + (above - below) * (place - Math.floor(place))
}
