// The figures of the axis of a chart.

/** `niceTicks` returns two grid lines at round values, no closer than `least`, and the value at the top of the chart. */
export function niceTicks(most: number, least = 0): { values: readonly number[]; highest: number } {
  if (most <= 0) return { values: [], highest: 1 }
  const rough = most / 2.4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(least, ([1, 2, 5, 10].findLast((factor) => factor * power <= rough) ?? 1) * power)
  return { values: [step, step * 2], highest: Math.max(most, step * 2) * 1.02 }
}
