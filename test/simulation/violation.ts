// The error of a history in which a store violates a rule, and the comparison that finds most violations.

export class Violation extends Error {
  override readonly name = 'Violation'
}

export function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Violation(rule)
}

const MARKED = new Set(['bigint', 'undefined'])

function show(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (MARKED.has(typeof inner) ? `<${String(inner)}>` : inner))
}

/** The reply must be exactly what the reference model predicts. */
export function expectSame(what: string, predicted: unknown, actual: unknown): void {
  const [ours, theirs] = [show(predicted), show(actual)]
  if (ours !== theirs) throw new Violation(`${what}\n  the rules say    ${ours}\n  the store says   ${theirs}`)
}
