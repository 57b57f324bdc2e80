// A plan of a replay, as the address of the page holds it, and what the API is asked for it.
export interface Plan {
  readonly filter: Readonly<Record<string, string>>
  readonly into: readonly string[]
  readonly rate: number
}

const FIELDS = ['source', 'type', 'tenant', 'subject', 'flow', 'key', 'event', 'from', 'to'] as const
export const DEFAULT_RATE = 100

export function planOf(query: Readonly<Record<string, string>>): Plan {
  const filter: Record<string, string> = {}
  for (const name of FIELDS) {
    const value = query[name] ?? ''
    if (value !== '') filter[name] = value
  }
  const into = (query['into'] ?? '').split(',').filter((flow) => flow !== '')
  const rate = Math.round(Number(query['rate']))
  return { filter, into, rate: Number.isFinite(rate) && rate >= 1 ? Math.min(rate, 1_000_000) : DEFAULT_RATE }
}

/** The body that starts the replay. An id makes a repeated click start it once. */
export function bodyOf({ filter, into, rate }: Plan, id: string, most?: number): unknown {
  const { from, to, ...rest } = filter
  return {
    id,
    rate,
    per: '1s',
    ...(most !== undefined && { most }),
    filter: { ...rest, ...(from !== undefined && { from: timeOf(from) }), ...(to !== undefined && { to: timeOf(to) }) },
    ...(into.length > 0 && { into }),
  }
}

function timeOf(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text
}

function iso(text: string): string {
  const at = new Date(Number(text))
  return Number.isNaN(at.getTime()) ? text : at.toISOString()
}

/** `commandOf` writes the plan as a command for a terminal. */
export function commandOf({ filter, into, rate }: Plan): string {
  const { from, to, ...rest } = filter
  const words = [
    ...Object.entries(rest).map(([name, value]) => `--${name}=${quoted(value)}`),
    ...(into.length === 0 ? [] : [`--into=${quoted(into.join(','))}`]),
    ...(from === undefined ? [] : [`--from=${iso(from)}`]),
    ...(to === undefined ? [] : [`--to=${iso(to)}`]),
    `--rate=${rate}`,
  ]
  return ['sluice replay start', ...words].join(' \\\n  ')
}

function quoted(text: string): string {
  return /^[\w.,@:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
