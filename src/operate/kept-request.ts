// The request that an event came in, as it was kept for audit: read field by field, for another release may have written it.

export interface KeptRequest {
  readonly id: string
  readonly method: string
  /** Path and query, without secrets. */
  readonly url: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  /** Of the whole request, at the first of several events in it. */
  readonly body64: string | undefined
}

/** Undefined when none was kept. */
export function keptRequest(bytes: Uint8Array | undefined): KeptRequest | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined
  const kept = fieldsIn(bytes)
  if (kept === undefined) return undefined
  const body64 = kept['body64']
  return {
    id: textOf(kept['id']),
    method: textOf(kept['method']),
    url: textOf(kept['url']),
    address: textOf(kept['address']),
    headers: headersOf(kept['headers']),
    body64: typeof body64 === 'string' ? body64 : undefined,
  }
}

function fieldsIn(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function headersOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, textOf(text)]))
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
