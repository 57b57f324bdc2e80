// Parses server-sent events from the bytes of a response, by the WHATWG standard.

export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

export async function* serverEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerEvent> {
  if (body === null) return
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parseEvent(block)
      if (event !== undefined) yield event
    }
  }
}

/** Returns undefined for a comment, which the server sends as a heartbeat. */
function parseEvent(block: string): ServerEvent | undefined {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const valuesOf = (name: string): readonly string[] =>
    fields.flatMap((field) => (field?.[1] === name ? (field[2] ?? '') : []))
  const data = valuesOf('data')
  if (data.length === 0) return undefined
  return { id: valuesOf('id').at(-1) ?? '', event: valuesOf('event').at(-1) ?? 'message', data: data.join('\n') }
}
