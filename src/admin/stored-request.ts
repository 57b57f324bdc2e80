// The stored HTTP request of an event, kept for audit. It is parsed field by field, because another release may have
// written it.

export interface StoredRequest {
  readonly id: string
  readonly method: string
  /** The path and query, without secrets. */
  readonly url: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  /** The whole body, stored with the first of several events. */
  readonly body64: string | undefined
}

/** `parseStoredRequest` returns undefined if no request was stored. */
export function parseStoredRequest(bytes: Uint8Array | undefined): StoredRequest | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined
  const kept = parseFields(bytes)
  if (kept === undefined) return undefined
  const body64 = kept['body64']
  return {
    id: toText(kept['id']),
    method: toText(kept['method']),
    url: toText(kept['url']),
    address: toText(kept['address']),
    headers: parseHeaders(kept['headers']),
    body64: typeof body64 === 'string' ? body64 : undefined,
  }
}

function parseFields(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function parseHeaders(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, toText(text)]))
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
