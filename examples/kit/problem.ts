// `problem` is the response of an app's own route to a request that it rejects (RFC 9457).

export function problem(status: number, detail: string): Response {
  const headers = { 'content-type': 'application/problem+json' }
  return new Response(JSON.stringify({ status, detail }), { status, headers })
}
