// Server-sent events out of the bytes of an answer, as the standard writes them.

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
      const event = eventOf(block)
      if (event !== undefined) yield event
    }
  }
}

/** Undefined: a comment, by which the server says that it is still there. */
function eventOf(block: string): ServerEvent | undefined {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const valuesOf = (name: string): readonly string[] =>
    fields.flatMap((field) => (field?.[1] === name ? (field[2] ?? '') : []))
  const data = valuesOf('data')
  if (data.length === 0) return undefined
  return { id: valuesOf('id').at(-1) ?? '', event: valuesOf('event').at(-1) ?? 'message', data: data.join('\n') }
}
