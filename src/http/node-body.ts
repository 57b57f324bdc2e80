// The body of a request to Node's own server, read no further than its bound.
import type { IncomingMessage } from 'node:http'
import type { ReadBody, Unread } from '../receive/bounds.ts'

export function nodeBody(message: IncomingMessage): ReadBody {
  return (most, hold = anything) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = []
      let length = 0
      const end = (body: Awaited<ReturnType<ReadBody>>): void => {
        message.off('data', take).off('end', done).off('close', cutOff).off('error', cutOff)
        resolve(body)
      }
      const take = (chunk: Buffer): void => {
        length += chunk.length
        const fault: Unread | undefined = length > most ? 'too-large' : hold(chunk.length) ? undefined : 'no-room'
        if (fault === undefined) return void chunks.push(chunk)
        chunks.length = 0
        end(fault)
        // Thrown away as it comes, until the request has to be over: a sender that is cut off while it sends does not
        // read the answer.
        message.resume()
      }
      const done = (): void => end(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length))
      const cutOff = (): void => end('cut-off')
      message.on('data', take).on('end', done).on('close', cutOff).on('error', cutOff)
    })
}

const anything = (): boolean => true
