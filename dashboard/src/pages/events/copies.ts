// An event as a command and as code, for a terminal and for a test.
import type { EventDetail } from '../../lib/types.ts'

/** These belong to one connection, or are made anew by curl. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'keep-alive',
  'expect',
])

/** `quoted` writes any text as one word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** `curlOf` repeats the request of an event, or publishes the event again if code had published it. */
export function curlOf(event: EventDetail, origin: string): string {
  const { request, body } = event
  if (request === undefined) {
    const published = JSON.stringify({
      type: event.type,
      source: event.source,
      ...(event.subject !== '' && { subject: event.subject }),
      ...(event.tenant !== '' && { tenant: event.tenant }),
      data: parsed(body.text) ?? body.text,
    })
    return [
      `curl ${quoted(`${origin}/v1/events`)}`,
      `  -H "authorization: Bearer $KEY"`,
      `  -H 'content-type: application/json'`,
      `  --data-binary ${quoted(published)}`,
    ].join(' \\\n')
  }
  const headers = Object.entries(request.headers)
    .filter(([name]) => !LEFT_OUT.has(name.toLowerCase()))
    .map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`)
  const isText = request.body64 === undefined && body.kind === 'text'
  const bytes = request.body64 ?? (body.kind === 'base64' ? body.text : undefined)
  const text = isText ? body.text : textOf(bytes)
  const target = `curl -X ${quoted(request.method)} ${quoted(new URL(request.url, origin).href)}`
  if (text !== undefined) return [target, ...headers, `  --data-binary ${quoted(text)}`].join(' \\\n')
  return `printf %s ${quoted(bytes ?? '')} | base64 -d | ${[target, ...headers, '  --data-binary @-'].join(' \\\n')}`
}

/** The bytes as text, if they are text without NUL, which no shell can hold. */
function textOf(base64: string | undefined): string | undefined {
  if (base64 === undefined) return undefined
  try {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.codePointAt(0) ?? 0)
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

/** `fixtureOf` is the event as a call of `sluice/testing`. */
export function fixtureOf(event: EventDetail): string {
  const { body } = event
  const data = body.kind === 'text' ? parsed(body.text) : undefined
  const fields = {
    id: event.id,
    source: event.source,
    type: event.type,
    time: event.time,
    ...(event.tenant !== '' && { tenant: event.tenant }),
    ...(event.subject !== '' && { subject: event.subject }),
    ...(data !== undefined && { data }),
  }
  const lines = Object.entries(fields).map(
    ([name, value]) => `  ${name}: ${JSON.stringify(value, null, 2).replaceAll('\n', '\n  ')},`,
  )
  const bytes =
    data !== undefined
      ? []
      : body.kind === 'text'
        ? [`  body: ${JSON.stringify(body.text)},`]
        : [`  body: Buffer.from(${JSON.stringify(body.text)}, 'base64'),`]
  return ['await t.send({', ...lines, ...bytes, '})', ''].join('\n')
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
