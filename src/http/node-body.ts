// The body of a request to Node's own server, read no further than its bound.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadBody, Unread } from '../receive/bounds.ts'

/** Whose bodies are being read. */
const reading = new WeakMap<Socket, (why: Unread) => void>()

/** What goes wrong with the connection meanwhile goes wrong with the request. False: nobody reads from it. */
export function endReading(socket: Socket, why: Unread): boolean {
  const end = reading.get(socket)
  end?.(why)
  return end !== undefined
}

export function nodeBody(message: IncomingMessage): ReadBody {
  return (most, hold = anything) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = []
      let length = 0
      const end = (body: Awaited<ReturnType<ReadBody>>): void => {
        message.off('data', take).off('end', done).off('close', cutOff).off('error', cutOff)
        reading.delete(message.socket)
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
      reading.set(message.socket, end)
    })
}

const anything = (): boolean => true
